package org.verbena.api;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.PooledByteBufAllocator;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelOption;
import io.netty.util.concurrent.BlockingOperationException;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.verbena.api.client.Target;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.spi.Patience;

/** Servers that stop without failing what their clients have sent. */
public abstract class ShutdownSuite extends ApiSuite {
    private static final Duration LONG = Duration.ofMinutes(10);
    private static final String LEAVING = "0900000000000000" + "00000000";

    private RdmaServer serve(int port, MessageHandler handler) {
        return RdmaServer.builder().group(group).bind(host(), port, handler);
    }

    private RdmaClient client(RdmaServer... servers) {
        List<InetSocketAddress> addresses = new ArrayList<>();
        for (RdmaServer each : servers) {
            addresses.add(each.localAddress());
        }
        return RdmaClient.builder()
                .group(group)
                .target(Target.of(addresses))
                .backOff(Duration.ofMillis(5), Duration.ofMillis(50))
                .connect();
    }

    private static void write(RdmaChannel channel, String hex) {
        channel.writeAndFlush(Unpooled.wrappedBuffer(HexFormat.of().parseHex(hex.replace(" ", ""))));
    }

    private static String hex(byte[] frame) {
        return HexFormat.of().formatHex(frame);
    }

    private static byte[] text(String text) {
        return text.getBytes(US_ASCII);
    }

    @Test
    void whatIsInHandlersIsAnswered() {
        for (boolean virtual : new boolean[] {false, true}) {
            BlockingQueue<Runnable> replies = new LinkedBlockingQueue<>();
            Semaphore turns = new Semaphore(0);
            MessageHandler later = MessageHandler.ofBytes((exchange, message) -> {
                replies.add(() -> exchange.reply(message));
                if (virtual) {
                    turns.acquire(); // the handler goes on after its reply
                }
            });
            RdmaServer server =
                    RdmaServer.builder().group(group).virtualThreads(virtual).bind(host(), 0, later);
            try (RdmaClient client = client(server)) {
                List<CompletableFuture<byte[]>> requests = new ArrayList<>();
                for (int i = 0; i < 20; i++) {
                    requests.add(client.request(new byte[] {(byte) i}));
                }
                Patience.until("all are in handlers", () -> replies.size() == 20);
                RdmaChannel channel = client.channel();
                CompletableFuture<Boolean> stopping = server.shutdown(LONG);
                settle(channel, channel);
                assertThat(stopping).isNotDone();
                assertThat(channel.isActive()).isTrue();
                assertThat(requests).noneMatch(CompletableFuture::isDone);

                replies.forEach(Runnable::run);
                for (int i = 0; i < 20; i++) {
                    assertThat(Patience.await("a reply", requests.get(i))).containsExactly(i);
                }
                done("the connection's end", channel.closeFuture());
                if (virtual) {
                    settle(channel, channel);
                    assertThat(stopping).as("handlers run").isNotDone();
                    turns.release(20);
                }
                assertThat(Patience.await("the shutdown", stopping)).isTrue();
                assertThat(server.connections().size()).isZero();
                assertThat(Patience.await("the same", server.shutdown(Duration.ofNanos(1))))
                        .isTrue();
            } finally {
                server.close();
            }
        }
    }

    @Test
    void aClientGoesOnAtAnotherServerAtOnce() {
        BlockingQueue<Runnable> replies = new LinkedBlockingQueue<>();
        MessageHandler later =
                MessageHandler.ofBytes((exchange, message) -> replies.add(() -> exchange.reply(message)));
        RdmaServer leaving = serve(0, later);
        try (RdmaServer other = serve(0, MessageHandler.ofBytes((exchange, message) -> exchange.reply(text("other"))));
                RdmaClient client = client(leaving, other)) {
            List<CompletableFuture<byte[]>> requests = new ArrayList<>();
            Patience.until("one is held", () -> {
                requests.add(client.request(text("held")));
                return !replies.isEmpty();
            });
            CompletableFuture<Boolean> stopping = leaving.shutdown(LONG);
            Patience.until("the other gets all", () -> {
                int before = replies.size();
                for (int i = 0; i < 20; i++) {
                    CompletableFuture<byte[]> request = client.request(text("new"));
                    requests.add(request);
                    Patience.until("it is answered or held", () -> request.isDone() || replies.size() > before);
                }
                return replies.size() == before;
            });
            assertThat(stopping).isNotDone();
            replies.forEach(Runnable::run);
            for (CompletableFuture<byte[]> each : requests) {
                Patience.await("a reply", each);
            }
            assertThat(Patience.await("the shutdown", stopping)).isTrue();
        }
    }

    @Test
    void anIdleServerStopsAtOnceAndAcceptsNoMore() {
        RdmaServer server = serve(0, MessageHandler.ofBytes((exchange, message) -> exchange.reply(message)));
        try (RdmaClient client = client(server)) {
            Patience.await("a reply", client.request(new byte[1]));
            assertThat(Patience.await("the shutdown", server.shutdown(LONG))).isTrue();
            assertThatThrownBy(() -> RdmaClient.builder().group(group).connect(host(), server.port()))
                    .isInstanceOf(ConnectionException.class);
        }
        RdmaServer unused = serve(0, (exchange, message) -> {});
        assertThat(Patience.await("the shutdown", unused.shutdown(LONG))).isTrue();
    }

    /** They may be up or not; none is served by a server that has stopped, and none is left without an outcome. */
    @Test
    void clientsInTheHandshakeAreIncluded() {
        for (int round = 0; round < 10; round++) {
            RdmaServer server = serve(0, MessageHandler.ofBytes((exchange, message) -> exchange.reply(message)));
            List<CompletableFuture<RdmaClient>> connecting = connectSome(server);
            assertThat(Patience.await("the shutdown", server.shutdown(LONG))).isTrue();
            assertNoneIsServed(connecting);
        }
    }

    @Test
    void whatIsNotAnsweredInTimeIsClosed() {
        AtomicBoolean arrived = new AtomicBoolean();
        RdmaServer server = serve(0, (exchange, message) -> arrived.set(true));
        try (RdmaClient client =
                RdmaClient.builder().group(group).reconnect(false).connect(host(), server.port())) {
            CompletableFuture<byte[]> request = client.request(new byte[1]);
            Patience.until("it has arrived", arrived::get);
            assertThat(Patience.await("the shutdown", server.shutdown(Duration.ofMillis(50))))
                    .isFalse();
            assertThat(failure("the request", request))
                    .isInstanceOfSatisfying(
                            ConnectionException.class,
                            lost -> assertThat(lost.mayHaveBegun()).isTrue());
        }
    }

    @Test
    void whatHasNotBegunInTimeIsRefused() {
        AtomicInteger begun = new AtomicInteger();
        Semaphore turns = new Semaphore(0);
        RdmaServer server = RdmaServer.builder()
                .group(group)
                .virtualThreads(true)
                .maxHandlers(1, 100)
                .bind(host(), 0, (exchange, message) -> {
                    begun.incrementAndGet();
                    turns.acquire();
                });
        try (RdmaClient client = client(server);
                RdmaClient repeats = RdmaClient.builder()
                        .group(group)
                        .idempotent(true)
                        .backOff(Duration.ofMillis(5), Duration.ofMillis(50))
                        .connect(host(), server.port())) {
            List<CompletableFuture<byte[]>> requests = new ArrayList<>();
            requests.add(client.request(text("hello")));
            Patience.until("one has begun", () -> begun.get() == 1);
            List<CompletableFuture<byte[]>> repeated = new ArrayList<>();
            for (int i = 0; i < 20; i++) {
                requests.add(client.request(text("hello")));
                repeated.add(repeats.request(text("hello")));
            }
            settle(client.channel(), repeats.channel());
            for (Channel accepted : server.connections()) {
                settle(accepted, accepted);
            }
            int port = server.port();
            assertThat(Patience.await("the shutdown", server.shutdown(Duration.ofMillis(50))))
                    .isFalse();
            List<Boolean> mayHaveBegun = new ArrayList<>();
            for (CompletableFuture<byte[]> each : requests) {
                mayHaveBegun.add(((ConnectionException) failure("a request", each)).mayHaveBegun());
            }
            assertThat(mayHaveBegun.removeFirst()).as("the one that had begun").isTrue();
            assertThat(mayHaveBegun).containsOnly(false);
            try (RdmaServer next =
                    serve(port, MessageHandler.ofBytes((exchange, message) -> exchange.reply(text("next"))))) {
                for (CompletableFuture<byte[]> each : repeated) {
                    assertThat(Patience.await("a reply", each)).isEqualTo(text("next"));
                }
                assertThat(next.connections().size()).isPositive();
            }
            assertThat(begun).hasValue(1);
        } finally {
            turns.release(20);
        }
    }

    /** Nothing can be said to the clients then, but the server does not wait for it. */
    @Test
    void itEndsWithoutMemory() {
        class Empty extends PooledByteBufAllocator {
            private volatile boolean isEmpty;

            Empty() {
                super(true);
            }

            @Override
            protected ByteBuf newDirectBuffer(int initialCapacity, int maxCapacity) {
                if (isEmpty) {
                    throw new OutOfMemoryError("for a test");
                }
                return super.newDirectBuffer(initialCapacity, maxCapacity);
            }
        }
        for (boolean idle : new boolean[] {true, false}) {
            Semaphore turns = new Semaphore(0);
            AtomicInteger begun = new AtomicInteger();
            Empty memory = new Empty();
            RdmaServer server = RdmaServer.builder()
                    .group(group)
                    .option(ChannelOption.ALLOCATOR, memory)
                    .virtualThreads(true)
                    .maxHandlers(1, 10)
                    .bind(host(), 0, (exchange, message) -> {
                        begun.incrementAndGet();
                        turns.acquire();
                    });
            try (RdmaClient client =
                    RdmaClient.builder().group(group).reconnect(false).connect(host(), server.port())) {
                List<CompletableFuture<byte[]>> requests = new ArrayList<>();
                for (int i = 0; i < 3 && !idle; i++) {
                    requests.add(client.request(new byte[1]));
                }
                Patience.until("one has begun, if any", () -> begun.get() == Math.min(1, requests.size()));
                Channel accepted = server.connections().iterator().next();
                settle(client.channel(), accepted);
                memory.isEmpty = true;
                CompletableFuture<Boolean> stopping = server.shutdown(idle ? LONG : Duration.ofMillis(50));
                assertThat(Patience.await("the shutdown", stopping)).isEqualTo(idle);
                for (CompletableFuture<byte[]> each : requests) {
                    assertThat(failure("a request", each)).isInstanceOf(ConnectionException.class);
                }
            } finally {
                turns.release(10);
                server.close();
            }
        }
    }

    // ---- hostile peers

    @Test
    void aPeerThatStaysIsServed() {
        RdmaServer server = serve(0, MessageHandler.ofBytes((exchange, message) -> exchange.reply(message)));
        RdmaChannel stays = stranger(server);
        RdmaChannel leaves = stranger(server);
        CompletableFuture<Boolean> stopping = server.shutdown(LONG);
        for (RdmaChannel each : List.of(stays, leaves)) {
            assertThat(hex(inbox(each).next())).startsWith(LEAVING);
        }
        write(leaves, "07 00000000000000");
        done("the one that leaves closing", leaves.closeFuture());
        write(stays, "04 00000000000001 ffffffff 6869");
        assertThat(hex(inbox(stays).next())).isEqualTo("02000000000000016869");
        assertThat(stopping).isNotDone();
        server.close();
        done("the one that stays closing", stays.closeFuture());
        assertThat(Patience.await("the shutdown", stopping))
                .as("all was answered")
                .isTrue();
    }

    @Test
    void repliesThatAreNotSentAreNoAnswers() {
        RdmaServer server = RdmaServer.builder()
                .group(group)
                .option(RdmaChannelOption.CLOSE_TIMEOUT_MILLIS, 200)
                .bind(host(), 0, MessageHandler.ofBytes((exchange, message) -> exchange.reply(new byte[256 << 10])));
        RdmaChannel deaf = stranger(server);
        deaf.config().setAutoRead(false);
        for (int i = 1; i <= 200; i++) {
            write(deaf, "04 000000000000" + HexFormat.of().toHexDigits((byte) i) + "ffffffff");
        }
        Channel accepted = server.connections().iterator().next();
        Patience.until("replies wait", () -> !accepted.isWritable());
        assertThat(Patience.await("the shutdown", server.shutdown(Duration.ofMillis(50))))
                .isFalse();
        done("closing", deaf.close());
    }

    @Test
    void aPeerThatStaysIsClosedInTheEnd() {
        RdmaServer server = serve(0, MessageHandler.ofBytes((exchange, message) -> exchange.reply(message)));
        RdmaChannel stays = stranger(server);
        CompletableFuture<Boolean> stopping = server.shutdown(Duration.ofMillis(50));
        done("the one that stays closing", stays.closeFuture());
        assertThat(Patience.await("the shutdown", stopping))
                .as("all was answered")
                .isTrue();
    }

    /** What only servers send does nothing at a server, unless it is malformed. */
    @Test
    void framesFromTheWrongSideAreIgnored() {
        try (RdmaServer server = serve(0, MessageHandler.ofBytes((exchange, message) -> exchange.reply(message)))) {
            RdmaChannel stranger = stranger(server);
            write(stranger, LEAVING);
            write(stranger, "0a 00000000000001 01 6e6f");
            write(stranger, "04 00000000000001 ffffffff 6869");
            assertThat(hex(inbox(stranger).next())).isEqualTo("02000000000000016869");
            done("closing", stranger.close());
            for (String malformed : List.of("09 00000000000000 000000", "0a 00000000000001", "0a 00000000000001 7f")) {
                RdmaChannel closed = stranger(server);
                write(closed, malformed);
                done("the server closing " + malformed, closed.closeFuture());
            }
        }
    }

    // ---- callers

    @Test
    void aHandlerMayShutItsServerDown() {
        CompletableFuture<Throwable> waits = new CompletableFuture<>();
        CompletableFuture<CompletableFuture<Boolean>> stopping = new CompletableFuture<>();
        RdmaServer[] server = new RdmaServer[1];
        server[0] = serve(0, MessageHandler.ofBytes((exchange, message) -> {
            stopping.complete(server[0].shutdown(LONG));
            waits.complete(catchThrowable(() -> server[0].shutdown(LONG).join()));
            exchange.reply(message);
        }));
        try (RdmaClient client = client(server[0])) {
            assertThat(Patience.await("the reply", client.request(new byte[7]))).hasSize(7);
            assertThat(Patience.await("the refusal", waits)).isInstanceOf(BlockingOperationException.class);
            assertThat(Patience.await("the shutdown", Patience.await("its future", stopping)))
                    .isTrue();
        }
        assertThatThrownBy(() -> server[0].shutdown(Duration.ZERO)).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> server[0].closeOnSigterm(Duration.ZERO)).isInstanceOf(IllegalArgumentException.class);
    }

    @Test
    void closingEndsAShutdown() {
        AtomicBoolean arrived = new AtomicBoolean();
        for (boolean own : new boolean[] {false, true}) {
            arrived.set(false);
            RdmaServer.Builder builder = RdmaServer.builder();
            RdmaServer server = (own ? builder.provider(provider()) : builder.group(group))
                    .bind(host(), 0, (exchange, message) -> arrived.set(true));
            try (RdmaClient client = client(server)) {
                CompletableFuture<byte[]> request = client.request(new byte[1], brief(500));
                Patience.until("it has arrived", arrived::get);
                CompletableFuture<Boolean> stopping = server.shutdown(LONG);
                server.close();
                assertThat(Patience.await("the shutdown", stopping))
                        .as("all was answered")
                        .isFalse();
                failure("the request", request);
            }
        }
    }

    // ---- clients that are gone

    @Test
    void handlersOfClientsThatHaveGoneAreWaitedFor() {
        Semaphore turns = new Semaphore(0);
        AtomicInteger handled = new AtomicInteger();
        RdmaServer server = RdmaServer.builder()
                .group(group)
                .virtualThreads(true)
                .bind(host(), 0, (exchange, message) -> {
                    turns.acquire();
                    handled.incrementAndGet();
                });
        try {
            RdmaClient client = client(server);
            Patience.await("a send", client.send(new byte[1]));
            Patience.await("one behind it", client.send(new byte[1]));
            Patience.until("the first has begun", () -> turns.hasQueuedThreads());
            Channel accepted = server.connections().iterator().next();
            settle(client.channel(), accepted);
            client.close();
            Patience.until("the connection is gone", () -> server.connections().isEmpty());
            settle(accepted, accepted);
            CompletableFuture<Boolean> stopping = server.shutdown(LONG);
            settle(accepted, accepted);
            assertThat(stopping).as("handlers run").isNotDone();
            turns.release(2);
            assertThat(Patience.await("the shutdown", stopping)).isTrue();
            assertThat(handled).hasValue(2);
        } finally {
            turns.release(2);
            server.close();
        }
    }

    @Test
    void aHandlerOfAClientThatHasGoneIsNotDoneInTime() {
        Semaphore turns = new Semaphore(0);
        RdmaServer server = RdmaServer.builder()
                .group(group)
                .virtualThreads(true)
                .bind(host(), 0, (exchange, message) -> turns.acquire());
        try {
            RdmaClient client = client(server);
            Patience.await("a send", client.send(new byte[1]));
            Patience.until("it has begun", () -> turns.hasQueuedThreads());
            client.close();
            Patience.until("the connection is gone", () -> server.connections().isEmpty());
            assertThat(Patience.await("the shutdown", server.shutdown(Duration.ofMillis(50))))
                    .isFalse();
        } finally {
            turns.release();
            server.close();
        }
    }

    @Test
    void requestsOfAClientThatIsLostMeanwhileAreNotAnswered() {
        BlockingQueue<Exchange> held = new LinkedBlockingQueue<>();
        RdmaServer server = serve(0, (exchange, message) -> held.add(exchange));
        RdmaChannel stays = stranger(server);
        write(stays, "04 00000000000001 ffffffff 68");
        Patience.take("the request", held);
        CompletableFuture<Boolean> stopping = server.shutdown(LONG);
        assertThat(hex(inbox(stays).next())).startsWith(LEAVING);
        done("closing", stays.close());
        assertThat(Patience.await("the shutdown", stopping)).isFalse();
    }
}
