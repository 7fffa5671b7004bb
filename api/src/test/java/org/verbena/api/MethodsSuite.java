package org.verbena.api;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.netty.buffer.ByteBuf;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.verbena.api.client.RequestOptions;
import org.verbena.api.service.Codec;
import org.verbena.api.service.Metadata;
import org.verbena.api.service.Method;
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
                .with(
                        PLACE,
                        (exchange, order) -> order.number() + " of " + order.what() + " for "
                                + exchange.metadata().text("tenant"))
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
}
