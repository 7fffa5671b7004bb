package org.verbena.api;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.buffer.ByteBuf;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Flow;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.SubmissionPublisher;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.verbena.api.client.RequestOptions;
import org.verbena.api.service.Codec;
import org.verbena.api.service.Metadata;
import org.verbena.api.service.Method;
import org.verbena.api.service.Reply;
import org.verbena.api.service.ValueStream;
import org.verbena.transport.RequestException;
import org.verbena.transport.RequestException.Refused.Reason;
import org.verbena.transport.RequestFailure;
import org.verbena.transport.spi.Patience;

/** Methods of services, with types. */
public abstract class MethodsSuite extends ApiSuite {
    private record Order(int number, String what) {}

    private static final Codec<Order> ORDER = new Codec<>() {
        @Override
        public void encode(Order value, ByteBuf out) {
            if (value.number() < 0) {
                throw new IllegalArgumentException("a number below 0");
            }
            out.writeInt(value.number()).writeCharSequence(value.what(), UTF_8);
        }

        @Override
        public Order decode(ByteBuf in) {
            return new Order(in.readInt(), in.toString(UTF_8));
        }
    };

    private static final Method<Order, String> PLACE = Method.of("orders", "place", ORDER, Codec.TEXT);
    private static final Method<String, Order> FIND = Method.of("orders", "find", Codec.TEXT, ORDER);
    private static final Method<String, Order> FIND_ELSEWHERE = Method.of("stock", "find", Codec.TEXT, ORDER);

    private RdmaServer serverOf(MessageHandler handler) {
        return RdmaServer.builder().group(group).bind(host(), 0, handler);
    }

    private RdmaClient clientOf(RdmaServer server) {
        return RdmaClient.builder().group(group).connect(host(), server.port());
    }

    private static Reason refusal(Throwable failure) {
        return ((RequestException.Refused) failure).reason();
    }

    /** As an exception's message may be. */
    @Test
    void aRefusalWithoutWordsFailsTheRequest() {
        MessageHandler wordless = (exchange, message) -> exchange.refuse(Reason.LIMIT, null);
        try (RdmaServer server =
                        RdmaServer.builder().group(group).virtualThreads(true).bind(host(), 0, wordless);
                RdmaClient client = clientOf(server)) {
            CompletableFuture<byte[]> request = client.request(new byte[1]);
            Patience.until("it fails", request::isCompletedExceptionally);
            assertThat(Patience.await("the shutdown", server.shutdown(Duration.ofMinutes(5))))
                    .isTrue();
        }
    }

    @Test
    void eachMethodHasItsHandler() throws Exception {
        Methods methods = Methods.NONE
                .with(PLACE, (exchange, order) -> {
                    exchange.addReplyMetadata(Metadata.EMPTY.with("number", "" + order.number()));
                    return order.number() + " of " + order.what() + " for "
                            + exchange.metadata().text("tenant");
                })
                .withAsync(FIND, (exchange, name) -> CompletableFuture.supplyAsync(() -> new Order(7, name)))
                .otherwise((exchange, message) -> exchange.reply(message.retain()));
        try (RdmaServer server = serverOf(methods);
                RdmaClient client = clientOf(server)) {
            RequestOptions blue = RequestOptions.DEFAULTS.withMetadata(Metadata.EMPTY.with("tenant", "blue"));
            assertThat(client.call(PLACE, new Order(3, "apples"), blue).get()).isEqualTo("3 of apples for blue");
            assertThat(client.call(PLACE, new Order(3, "apples"), blue.withIdempotent(true))
                            .get())
                    .isEqualTo("3 of apples for blue");
            assertThat(client.call(FIND, "pears").get()).isEqualTo(new Order(7, "pears"));
            assertThat(client.callReply(PLACE, new Order(3, "apples"), blue).get())
                    .isEqualTo(new Reply<>("3 of apples for blue", Metadata.EMPTY.with("number", "3")));
            assertThat(client.request("plain".getBytes(UTF_8)).get()).isEqualTo("plain".getBytes(UTF_8));
            assertThat(refusal(failure("the call", client.call(FIND_ELSEWHERE, "pears"))))
                    .isEqualTo(Reason.UNKNOWN);
        }
        assertThatIllegalArgumentException().isThrownBy(() -> methods.with(PLACE, (exchange, order) -> ""));
    }

    @Test
    void whatHasNoMethodIsRefusedAndTheConnectionStays() throws Exception {
        Methods methods = Methods.NONE.with(PLACE, (exchange, order) -> order.what());
        AtomicInteger handled = new AtomicInteger();
        MessageHandler plain = (exchange, message) -> {
            handled.incrementAndGet();
            exchange.reply(message.retain());
        };
        try (RdmaServer server = serverOf(methods);
                RdmaServer other = serverOf(plain);
                RdmaClient client = clientOf(server);
                RdmaClient otherClient = clientOf(other)) {
            assertThat(refusal(failure("the request", client.request(new byte[3]))))
                    .isEqualTo(Reason.UNKNOWN);
            assertThat(client.call(PLACE, new Order(1, "pears")).get()).isEqualTo("pears");
            assertThat(refusal(failure("the call", otherClient.call(PLACE, new Order(1, "pears")))))
                    .as("a server without methods")
                    .isEqualTo(Reason.UNKNOWN);
            assertThat(otherClient.request(new byte[3]).get()).hasSize(3);
            assertThat(handled).hasValue(1);
        }
    }

    @Test
    void aFailureEndsOnlyItsCall() throws Exception {
        Methods methods = Methods.NONE
                .with(PLACE, (exchange, order) -> {
                    if (order.number() == 1) {
                        throw new RequestFailure(404, "no such thing");
                    }
                    return order.what();
                })
                .withAsync(
                        FIND,
                        (exchange, name) -> name.isEmpty()
                                ? CompletableFuture.failedFuture(new RequestFailure(405, "no name"))
                                : CompletableFuture.completedFuture(new Order(-1, name)));
        try (RdmaServer server = serverOf(methods);
                RdmaClient client = clientOf(server)) {
            assertThat(failure("encoding", client.call(PLACE, new Order(-1, "pears"))))
                    .isInstanceOf(IllegalArgumentException.class);
            assertThat(((RequestFailure) failure("the call", client.call(PLACE, new Order(1, "pears")))).code())
                    .isEqualTo(404);
            assertThat(((RequestFailure) failure("the call", client.call(FIND, ""))).code())
                    .isEqualTo(405);
            assertThat(failure("a reply that cannot be encoded", client.call(FIND, "pears")))
                    .isInstanceOf(RequestException.Failed.class);
            Method<byte[], String> placeBytes = Method.of("orders", "place", Codec.BYTES, Codec.TEXT);
            assertThat(failure("a request that cannot be decoded", client.call(placeBytes, new byte[2])))
                    .isInstanceOf(RequestException.Failed.class);
            Method<Order, Order> placeOrder = Method.of("orders", "place", ORDER, ORDER);
            assertThat(failure("a reply that cannot be decoded", client.call(placeOrder, new Order(2, "p"))))
                    .isInstanceOf(IndexOutOfBoundsException.class);
            assertThat(client.call(PLACE, new Order(2, "pears")).get()).isEqualTo("pears");
        }
    }

    @Test
    void aHandlerMayRefuse() {
        MessageHandler strict = (exchange, message) -> {
            if (exchange.metadata().bytes("token") == null) {
                exchange.refuse(Reason.NOT_AUTHORIZED, "no token");
            }
        };
        try (RdmaServer server = serverOf(strict);
                RdmaClient client = clientOf(server)) {
            assertThat(refusal(failure("the request", client.request(new byte[1]))))
                    .isEqualTo(Reason.NOT_AUTHORIZED);
        }
    }

    @Test
    void namesHaveTheFormOfMetadatas() {
        for (String name : new String[] {"", "A", "a/b", ":a", "\u00e4"}) {
            assertThatIllegalArgumentException().isThrownBy(() -> Method.of(name, "place", Codec.TEXT, Codec.TEXT));
            assertThatIllegalArgumentException().isThrownBy(() -> Method.of("orders", name, Codec.TEXT, Codec.TEXT));
        }
        assertThat(PLACE).hasToString("orders/place");
    }

    // ---- streams

    private static final Method<String, Order> LIST = Method.of("orders", "list", Codec.TEXT, ORDER);
    private static final Method<Order, String> TOTAL = Method.of("orders", "total", ORDER, Codec.TEXT);
    private static final Method<Order, Order> DOUBLE = Method.of("orders", "double", ORDER, ORDER);

    private static final Methods STREAMS = Methods.NONE
            .withStream(LIST, (exchange, stream) -> {
                int count = Integer.parseInt(stream.receive());
                for (int i = 0; i < count; i++) {
                    stream.whenWritable().get();
                    stream.send(new Order(i, "apples"));
                }
                stream.end();
            })
            .withStream(TOTAL, (exchange, stream) -> {
                int total = 0;
                for (Order order : stream) {
                    total += order.number();
                }
                stream.send(total + " for " + exchange.metadata().text("tenant"));
                stream.end();
            })
            .withStream(DOUBLE, (exchange, stream) -> {
                for (Order order : stream) {
                    stream.send(new Order(2 * order.number(), order.what())).get();
                }
                stream.end();
            })
            .with(PLACE, (exchange, order) -> order.what());

    private RdmaServer blocking(Methods methods) {
        return RdmaServer.builder().group(group).virtualThreads(true).bind(host(), 0, methods);
    }

    private static <R> List<R> all(ValueStream<?, R> stream) {
        List<R> values = new ArrayList<>();
        stream.forEach(values::add);
        return values;
    }

    @Test
    void requestsRepliesOrBothMayBeMany() throws Exception {
        RequestOptions blue = RequestOptions.DEFAULTS.withMetadata(Metadata.EMPTY.with("tenant", "blue"));
        try (RdmaServer server = blocking(STREAMS);
                RdmaClient client = clientOf(server)) {
            for (int count : new int[] {0, 1, 1000}) {
                try (ValueStream<String, Order> orders = client.stream(LIST, "" + count, blue)) {
                    assertThat(all(orders)).hasSize(count);
                    Patience.await("the end", orders.whenOver().thenApply(none -> 1));
                }
                ValueStream<Order, String> total = client.stream(TOTAL, blue);
                for (int i = 0; i < count; i++) {
                    Patience.await("room", total.whenWritable().thenApply(none -> 1));
                    total.send(new Order(i, "pears"));
                }
                total.end();
                assertThat(total.receive()).isEqualTo(count * (count - 1) / 2 + " for blue");
                assertThat(total.receive()).isNull();
            }
            assertThat(all(client.stream(TOTAL, new Order(3, "pears"), blue))).containsExactly("3 for blue");
            try (ValueStream<Order, Order> doubled = client.stream(DOUBLE, RequestOptions.DEFAULTS)) {
                for (int i = 0; i < 100; i++) {
                    doubled.send(new Order(i, "plums")).get();
                    assertThat(doubled.receive()).isEqualTo(new Order(2 * i, "plums"));
                }
                doubled.end();
                assertThat(doubled.iterator().hasNext()).isFalse();
            }
        }
    }

    /** Notes what it gets, and requests all. */
    private static final class Notes<T> implements Flow.Subscriber<T> {
        final BlockingQueue<T> values = new LinkedBlockingQueue<>();
        final CompletableFuture<Integer> end = new CompletableFuture<>();

        @Override
        public void onSubscribe(Flow.Subscription given) {
            given.request(Long.MAX_VALUE);
        }

        @Override
        public void onNext(T value) {
            values.add(value);
        }

        @Override
        public void onError(Throwable cause) {
            end.completeExceptionally(cause);
        }

        @Override
        public void onComplete() {
            end.complete(values.size());
        }
    }

    /** On the loops of both ends. */
    @Test
    void valuesArePublished() {
        Methods doubling = Methods.NONE.withStream(DOUBLE, (exchange, stream) -> {
            Notes<Order> notes = new Notes<>();
            stream.values().subscribe(notes);
            notes.end.thenRun(() -> {
                notes.values.forEach(each -> stream.send(new Order(2 * each.number(), each.what())));
                stream.end();
            });
        });
        try (RdmaServer server = serverOf(doubling);
                RdmaClient client = clientOf(server)) {
            SubmissionPublisher<Order> publisher = new SubmissionPublisher<>();
            ValueStream<Order, Order> stream = client.stream(DOUBLE, RequestOptions.DEFAULTS);
            Notes<Order> notes = new Notes<>();
            stream.values().subscribe(notes);
            stream.sendAll(publisher);
            for (int i = 0; i < 100; i++) {
                publisher.submit(new Order(i, "plums"));
            }
            publisher.close();
            assertThat(Patience.await("the end", notes.end)).isEqualTo(100);
            assertThat(notes.values).startsWith(new Order(0, "plums")).contains(new Order(198, "plums"));
            ValueStream<Order, Order> failing = client.stream(DOUBLE, RequestOptions.DEFAULTS);
            Notes<Order> failed = new Notes<>();
            failing.values().subscribe(failed);
            try (SubmissionPublisher<Order> wrong = new SubmissionPublisher<>()) {
                failing.sendAll(wrong);
                wrong.submit(new Order(-1, "no such number"));
                assertThat(failure("what the codec has thrown", failed.end))
                        .isInstanceOf(IllegalArgumentException.class);
                Patience.until("it wants no more", () -> !wrong.hasSubscribers());
            }
        }
    }

    /** As it fails a call. */
    @Test
    void aValueThatHasNoMessageAndAMessageThatHasNoValueEndTheStream() throws Exception {
        Method<String, Order> worded = Method.of("orders", "double", Codec.TEXT, ORDER);
        Method<String, Order> wording = Method.of("orders", "words", Codec.TEXT, ORDER);
        Method<String, String> words = Method.of("orders", "words", Codec.TEXT, Codec.TEXT);
        BlockingQueue<Throwable> atServer = new LinkedBlockingQueue<>();
        Methods methods = STREAMS.withStream(words, (exchange, stream) -> {
                    stream.whenOver().whenComplete((none, cause) -> atServer.add(cause));
                    stream.send("x");
                    stream.send("long enough");
                    stream.receive();
                })
                .withStream(FIND, (exchange, stream) -> stream.send(new Order(-1, "no such number")));
        try (RdmaServer server = blocking(methods);
                RdmaClient client = clientOf(server)) {
            ValueStream<Order, Order> unsendable = client.stream(DOUBLE, RequestOptions.DEFAULTS);
            unsendable.send(new Order(1, "one"));
            assertThat(failure("the send", unsendable.send(new Order(-1, "no such number"))))
                    .isInstanceOf(IllegalArgumentException.class);
            assertThat(failure("the stream", unsendable.whenOver())).isInstanceOf(IllegalArgumentException.class);
            ValueStream<Order, Order> unbegun =
                    client.stream(DOUBLE, new Order(-1, "no such number"), RequestOptions.DEFAULTS);
            assertThatIllegalArgumentException().isThrownBy(unbegun::receive);
            ValueStream<String, Order> unreadable = client.stream(worded, RequestOptions.DEFAULTS);
            unreadable.send("x");
            assertThat(failure("the stream", unreadable.whenOver())).isInstanceOf(RequestException.Failed.class);
            assertThat(failure(
                            "a reply",
                            client.stream(FIND, "any", RequestOptions.DEFAULTS).whenOver()))
                    .isInstanceOf(RequestException.Failed.class);
            ValueStream<String, Order> garbled = client.stream(wording, RequestOptions.DEFAULTS);
            assertThatThrownBy(garbled::receive).isInstanceOf(IndexOutOfBoundsException.class);
            assertThat(failure("the stream", garbled.whenOver())).isInstanceOf(IndexOutOfBoundsException.class);
            assertThatThrownBy(garbled::receive).isInstanceOf(IndexOutOfBoundsException.class);
            assertThat(Patience.take("the server knows", atServer)).isInstanceOf(CancellationException.class);
            Notes<Order> notes = new Notes<>();
            client.stream(wording, RequestOptions.DEFAULTS).values().subscribe(notes);
            assertThat(failure("the subscriber", notes.end)).isInstanceOf(IndexOutOfBoundsException.class);
            assertThat(notes.values).isEmpty();
            assertThat(client.call(PLACE, new Order(1, "pears")).get()).isEqualTo("pears");
        }
    }

    @Test
    void aCheckedFailureOfACodecIsWrapped() {
        Codec<String> strict = new Codec<>() {
            @Override
            public void encode(String value, ByteBuf out) {
                out.writeCharSequence(value, UTF_8);
            }

            @Override
            public String decode(ByteBuf in) throws IOException {
                throw new IOException("as the test wants");
            }
        };
        Method<String, String> words = Method.of("orders", "words", Codec.TEXT, Codec.TEXT);
        Method<String, String> strictly = Method.of("orders", "words", Codec.TEXT, strict);
        Methods methods = Methods.NONE.withStream(words, (exchange, stream) -> stream.send("x"));
        try (RdmaServer server = blocking(methods);
                RdmaClient client = clientOf(server)) {
            ValueStream<String, String> stream = client.stream(strictly, RequestOptions.DEFAULTS);
            for (int i = 0; i < 2; i++) {
                assertThatThrownBy(stream::receive)
                        .isInstanceOf(CompletionException.class)
                        .hasCauseInstanceOf(IOException.class);
            }
            assertThat(failure("the stream", stream.whenOver())).isInstanceOf(IOException.class);
        }
    }

    @Test
    void streamsAndCallsAreNotTakenForEachOther() {
        Method<Order, String> none = Method.of("orders", "none", ORDER, Codec.TEXT);
        RequestOptions options = RequestOptions.DEFAULTS;
        try (RdmaServer server = blocking(STREAMS);
                RdmaServer other = serverOf((exchange, message) -> exchange.reply(message.retain()));
                RdmaClient client = clientOf(server);
                RdmaClient otherClient = clientOf(other)) {
            assertThat(refusal(failure("a call", client.call(TOTAL, new Order(1, "pears")))))
                    .isEqualTo(Reason.UNKNOWN);
            assertThat(refusal(failure("a stream", client.stream(PLACE, options).whenOver())))
                    .isEqualTo(Reason.UNKNOWN);
            assertThat(refusal(failure("a stream", client.stream(none, options).whenOver())))
                    .isEqualTo(Reason.UNKNOWN);
            assertThat(refusal(failure(
                            "a stream", otherClient.stream(TOTAL, options).whenOver())))
                    .isEqualTo(Reason.UNKNOWN);
        }
        assertThatIllegalArgumentException().isThrownBy(() -> STREAMS.withStream(TOTAL, (exchange, stream) -> {}));
    }
}
