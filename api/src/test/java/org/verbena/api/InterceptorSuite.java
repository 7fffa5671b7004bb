package org.verbena.api;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.util.concurrent.Future;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.verbena.api.client.ClientInterceptor;
import org.verbena.api.client.RequestOptions;
import org.verbena.api.service.Codec;
import org.verbena.api.service.MessageStream;
import org.verbena.api.service.Metadata;
import org.verbena.api.service.Method;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.RequestException;
import org.verbena.transport.RequestException.Refused.Reason;
import org.verbena.transport.RequestFailure;
import org.verbena.transport.spi.Patience;

/** What stands around requests at both ends, and the deadline that those of a handler inherit. */
public abstract class InterceptorSuite extends ApiSuite {
    private static final Method<String, String> GREET = Method.of("people", "greet", Codec.TEXT, Codec.TEXT);

    private final Queue<String> events = new ConcurrentLinkedQueue<>();

    private RdmaServer.Builder server() {
        return RdmaServer.builder().group(group);
    }

    private RdmaClient.Builder client() {
        return RdmaClient.builder().group(group);
    }

    private static String name(Throwable cause) {
        if (cause instanceof CancellationException) { // Netty's is a class of its own
            return "cancelled";
        }
        return cause == null ? "replied" : cause.getClass().getSimpleName();
    }

    private ClientInterceptor client(String name) {
        return request -> {
            events.add("+" + name + " " + request.method() + " " + request.metadata());
            request.addMetadata(Metadata.EMPTY.with(name, "1"));
            request.onEnd((metadata, cause) -> events.add("-" + name + " " + metadata + " " + name(cause)));
        };
    }

    private ServerInterceptor server(String name) {
        return (exchange, message, next) -> {
            events.add("+" + name + " " + exchange.method() + " " + exchange.metadata());
            exchange.addReplyMetadata(Metadata.EMPTY.with(name, "1"));
            exchange.onEnd(cause -> events.add("-" + name + " " + name(cause)));
            next.onMessage(exchange, message);
            events.add("=" + name);
        };
    }

    @Test
    void theFirstIsTheOutermost() throws Exception {
        Methods methods = Methods.NONE.with(GREET, (exchange, who) -> {
            events.add("handler");
            return "hello " + who;
        });
        try (RdmaServer server =
                        server().intercept(server("s1")).intercept(server("s2")).bind(host(), 0, methods);
                RdmaClient client =
                        client().intercept(client("c1")).intercept(client("c2")).connect(host(), server.port())) {
            assertThat(client.call(GREET, "Ann").get()).isEqualTo("hello Ann");
        }
        assertThat(events)
                .containsSubsequence(
                        "+c1 people/greet []",
                        "+c2 people/greet [c1]",
                        "+s1 people/greet [c1, c2]",
                        "+s2 people/greet [c1, c2]",
                        "handler",
                        "-s2 replied",
                        "-s1 replied",
                        "=s2",
                        "=s1")
                .containsSubsequence("-s1 replied", "-c2 [s1, s2] replied", "-c1 [s1, s2] replied")
                .hasSize(11);
    }

    @Test
    void allKindsOfRequestsAreSeenAndMessagesAreNot() throws Exception {
        AtomicInteger messages = new AtomicInteger();
        MessageHandler handler = (exchange, message) -> {
            if (exchange.isRequest()) {
                exchange.reply(message.retain());
            } else {
                messages.incrementAndGet();
            }
        };
        try (RdmaServer server = server().intercept(server("s")).bind(host(), 0, handler);
                RdmaClient client = client().intercept(client("c")).connect(host(), server.port())) {
            byte[] some = "some".getBytes(UTF_8);
            Duration timeout = Duration.ofSeconds(30);
            RequestOptions options = RequestOptions.DEFAULTS.withIdempotent(true);
            assertThat(client.request(some).get()).isEqualTo(some);
            assertThat(client.request(some, timeout).get()).isEqualTo(some);
            assertThat(client.request(some, options).get()).isEqualTo(some);
            assertThat(client.requestReply(some, options).get().metadata().names())
                    .containsExactly("s");
            assertThat(client.request(ByteBuffer.wrap(some)).get()).isEqualTo(ByteBuffer.wrap(some));
            assertThat(client.request(ByteBuffer.wrap(some), timeout).get()).isEqualTo(ByteBuffer.wrap(some));
            assertThat(client.request(ByteBuffer.wrap(some), options).get()).isEqualTo(ByteBuffer.wrap(some));
            for (var request : List.of(
                    client.request(Unpooled.copiedBuffer(some)),
                    client.request(Unpooled.copiedBuffer(some), timeout),
                    client.request(Unpooled.copiedBuffer(some), options))) {
                ByteBuf reply = done("the request", request).getNow();
                assertThat(reply.toString(UTF_8)).isEqualTo("some");
                reply.release();
            }
            client.send(some).get();
            Patience.until("the message is handled", () -> messages.get() == 1);
            assertThat(events.stream().filter(event -> event.equals("+s null [c]")))
                    .hasSize(10);
            assertThat(events.stream().filter(event -> event.equals("-c [s] replied")))
                    .hasSize(10);
            assertThat(events).hasSize(10 * 5);
        }
    }

    @Test
    void aServersMayRefuseOrFailOneRequest() throws Exception {
        ServerInterceptor strict = (exchange, message, next) -> {
            String token = exchange.metadata().text("token");
            if (token == null) {
                exchange.refuse(Reason.NOT_AUTHORIZED, "no token");
            } else if (token.equals("bad")) {
                throw new RequestFailure(7, "bad token");
            } else if (token.equals("broken")) {
                throw new IllegalStateException("broken");
            } else {
                next.onMessage(exchange, message);
            }
        };
        AtomicInteger handled = new AtomicInteger();
        try (RdmaServer server = server().intercept(server("s"))
                        .intercept(strict)
                        .bind(host(), 0, (exchange, message) -> {
                            handled.incrementAndGet();
                            exchange.reply(message.retain());
                        });
                RdmaClient client = client().connect(host(), server.port())) {
            byte[] some = new byte[3];
            assertThat(((RequestException.Refused) failure("no token", client.request(some))).reason())
                    .isEqualTo(Reason.NOT_AUTHORIZED);
            assertThat(((RequestFailure) failure("bad", client.request(some, token("bad")))).code())
                    .isEqualTo(7);
            assertThat(failure("broken", client.request(some, token("broken"))))
                    .isInstanceOf(RequestException.Failed.class);
            assertThat(client.request(some, token("good")).get()).isEqualTo(some);
            assertThat(handled).hasValue(1);
            assertThat(events.stream().filter(event -> event.startsWith("-")))
                    .containsExactly("-s Refused", "-s RequestFailure", "-s IllegalStateException", "-s replied");
        }
    }

    private static RequestOptions token(String value) {
        return RequestOptions.DEFAULTS.withMetadata(Metadata.EMPTY.with("token", value));
    }

    /** Whether the reply comes before its future is made or after. */
    @Test
    void theProgramGetsAReplyWhenInterceptorsHaveSeenIt() throws Exception {
        AtomicInteger seen = new AtomicInteger();
        ClientInterceptor counting = request -> request.onEnd((metadata, cause) -> seen.incrementAndGet());
        try (RdmaServer server = server().bind(host(), 0, (exchange, message) -> exchange.reply(message.retain()));
                RdmaClient client = client().intercept(counting).connect(host(), server.port())) {
            for (int i = 1; i <= 2000; i++) {
                client.request(new byte[1]).get();
                assertThat(seen).hasValue(i);
            }
        }
    }

    @Test
    void aClientsMayRefuseOneRequest() throws Exception {
        AtomicInteger handled = new AtomicInteger();
        ClientInterceptor strict = request -> {
            if (request.metadata().bytes("token") == null) {
                throw new IllegalStateException("no token");
            }
            request.onEnd((metadata, cause) -> {
                throw new IllegalStateException("an action's failure is its own");
            });
        };
        try (RdmaServer server = server().bind(host(), 0, (exchange, message) -> {
                    handled.incrementAndGet();
                    exchange.reply(message.retain());
                });
                RdmaClient client =
                        client().intercept(client("c")).intercept(strict).connect(host(), server.port())) {
            assertThat(failure("no token", client.request(new byte[3]))).isInstanceOf(IllegalStateException.class);
            ByteBuf message = Unpooled.buffer().writeByte(1);
            done("a buffer without a token", client.request(message), false);
            assertThat(message.refCnt()).isZero();
            assertThat(client.request(new byte[3], token("good")).get()).hasSize(3);
            assertThat(handled).hasValue(1);
            assertThat(events.stream().filter(event -> event.startsWith("-")))
                    .containsExactly("-c [] IllegalStateException", "-c [] IllegalStateException", "-c [] replied");
        }
    }

    private static void done(String what, Future<?> future, boolean succeeds) {
        Patience.until(what, future::isDone);
        assertThat(future.isSuccess()).as(what).isEqualTo(succeeds);
    }

    @Test
    void bothEndsSeeThatARequestIsGivenUp() {
        MessageHandler never = (exchange, message) -> {};
        try (RdmaServer server = server().intercept(server("s")).bind(host(), 0, never);
                RdmaClient client = client().intercept(client("c")).connect(host(), server.port())) {
            CompletableFuture<byte[]> request = client.request(new byte[1]);
            Patience.until("the handler has it", () -> events.contains("=s"));
            request.cancel(false);
            Patience.until("the server knows", () -> events.contains("-s cancelled"));
            Patience.until("the client knows", () -> events.contains("-c [] cancelled"));
            CompletableFuture<byte[]> lost = client.request(new byte[1]);
            Patience.until(
                    "the handler has it",
                    () -> events.stream().filter("=s"::equals).count() == 2);
            server.closeAsync().join();
            assertThat(failure("the lost one", lost)).isInstanceOf(ConnectionException.class);
            // Its end follows that of its connection, which is all that closing waits for.
            Patience.until(
                    "the server knows that it is lost",
                    () -> events.stream().filter("-s cancelled"::equals).count() == 2);
        }
    }

    @Test
    void streamsAreSeenFromTheirBeginToTheirEnd() throws Exception {
        ServerInterceptor strict = (exchange, message, next) -> {
            if (exchange.metadata().text("c") == null) {
                exchange.refuse(Reason.NOT_AUTHORIZED, "no token");
            } else {
                next.onMessage(exchange, message);
            }
        };
        MessageHandler counting = (exchange, message) -> {
            MessageStream stream = exchange.stream();
            stream.send(new byte[] {7}).get();
            stream.end();
        };
        try (RdmaServer server = server().virtualThreads(true)
                        .intercept(server("s"))
                        .intercept(strict)
                        .bind(host(), 0, counting);
                RdmaClient client = client().intercept(client("c")).connect(host(), server.port());
                RdmaClient other = client().connect(host(), server.port())) {
            try (MessageStream stream = client.stream(new byte[1], RequestOptions.DEFAULTS)) {
                stream.end();
                List<byte[]> received = new ArrayList<>();
                stream.forEach(received::add);
                assertThat(received).containsExactly(new byte[] {7});
            }
            Patience.until("both know", () -> events.contains("-c [s] replied") && events.contains("-s replied"));
            try (MessageStream stream = other.stream(new byte[1], RequestOptions.DEFAULTS)) {
                assertThat(failure("the stream", stream.whenOver())).isInstanceOf(RequestException.Refused.class);
            }
            assertThat(events).contains("-s Refused");
        }
    }

    // ---- deadlines

    /** It would not be answered, and the backend would look as if it answered nothing. */
    @Test
    void aHandlerThatIsLateSendsNothing() {
        AtomicInteger arrived = new AtomicInteger();
        CompletableFuture<byte[]> asked = new CompletableFuture<>();
        try (RdmaServer backend = server().bind(host(), 0, (exchange, message) -> {
                    arrived.incrementAndGet();
                    exchange.reply(message.retain());
                });
                RdmaClient between = client().connect(host(), backend.port());
                RdmaServer front = server().virtualThreads(true).bind(host(), 0, (exchange, message) -> {
                    Patience.until("its time is over", () -> exchange.remainingNanos() == 0);
                    between.request(new byte[1]).whenComplete((reply, failure) -> {
                        if (failure == null) {
                            asked.complete(reply);
                        } else {
                            asked.completeExceptionally(failure);
                        }
                    });
                });
                RdmaClient client = client().connect(host(), front.port())) {
            long before = between.channel().statistics().messagesSent();
            CompletableFuture<byte[]> request = client.request(new byte[1], brief(50));
            assertThat(failure("the request", request)).isInstanceOf(RequestException.TimedOut.class);
            assertThat(failure("the backend's", asked)).isInstanceOf(RequestException.TimedOut.class);
            assertThat(between.channel().statistics().messagesSent()).isEqualTo(before);
            assertThat(between.request(new byte[2])).succeedsWithin(Duration.ofMinutes(1));
            assertThat(arrived).hasValue(1);
        }
    }

    /** The time in a timed request, in microseconds. */
    private static long micros(byte[] frame) {
        assertThat(frame[0]).isEqualTo((byte) 4);
        return Integer.toUnsignedLong(ByteBuffer.wrap(frame).getInt(8));
    }

    private static final long SHORT_MICROS = TimeUnit.SECONDS.toMicros(20);

    @Test
    void requestsOfAHandlerInheritItsDeadline() throws Exception {
        for (boolean virtual : new boolean[] {false, true}) {
            try (Server backend = listenForFrames();
                    RdmaClient inner = client().requestTimeout(Duration.ofHours(1))
                            .connect(host(), backend.address().getPort());
                    RdmaServer server = server().virtualThreads(virtual).bind(host(), 0, (exchange, message) -> {
                        inner.request(new byte[] {1});
                        inner.request(new byte[] {2}, Duration.ofSeconds(1));
                        inner.request(Unpooled.buffer().writeByte(3), Duration.ofHours(1));
                        CompletableFuture.runAsync(() -> inner.request(new byte[] {4}), executor())
                                .thenRun(() -> exchange.reply(new byte[1]));
                    });
                    RdmaClient outer =
                            client().requestTimeout(Duration.ofSeconds(20)).connect(host(), server.port())) {
                RdmaChannel accepted = backend.next();
                assertThat(outer.request(new byte[1]).get()).hasSize(1);
                assertThat(micros(inbox(accepted).next())).isPositive().isLessThanOrEqualTo(SHORT_MICROS);
                assertThat(micros(inbox(accepted).next())).isPositive().isLessThanOrEqualTo(1_000_000);
                assertThat(micros(inbox(accepted).next())).isPositive().isLessThanOrEqualTo(SHORT_MICROS);
                assertThat(micros(inbox(accepted).next()))
                        .as("of another thread")
                        .isGreaterThan(SHORT_MICROS);
                inner.request(new byte[] {5});
                inner.channel()
                        .eventLoop()
                        .submit(() -> inner.request(new byte[] {6}))
                        .sync();
                for (int i = 0; i < 2; i++) {
                    assertThat(micros(inbox(accepted).next()))
                            .as("after the handler")
                            .isGreaterThan(SHORT_MICROS);
                }
            }
        }
    }

    private static Executor executor() {
        return task -> Thread.ofPlatform().start(task);
    }
}
