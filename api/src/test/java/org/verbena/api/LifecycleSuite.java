package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.util.concurrent.BlockingOperationException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.spi.Patience;

/** How clients and servers of the short form begin and end, in whatever order and on whatever thread that happens. */
public abstract class LifecycleSuite extends ApiSuite {
    private static final MessageHandler ECHO = (exchange, message) -> exchange.reply(message.retain());

    private RdmaServer serve() {
        return RdmaServer.builder().group(group).bind(host(), 0, ECHO);
    }

    private RdmaClient client(RdmaServer server) {
        return RdmaClient.builder().group(group).failFast().connect(host(), server.port());
    }

    private static CompletableFuture<Void> elsewhere(Runnable work) {
        CompletableFuture<Void> done = new CompletableFuture<>();
        Thread.ofPlatform().daemon().start(() -> {
            try {
                work.run();
                done.complete(null);
            } catch (Throwable failure) {
                done.completeExceptionally(failure);
            }
        });
        return done;
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS);
        } catch (InterruptedException interruption) {
            throw new IllegalStateException(interruption);
        }
    }

    // ---- ends

    @Test
    void serversAndClientsCloseAfterTheirLoops() {
        RdmaServer server = serve();
        RdmaClient client = client(server);
        RdmaServer idle = serve();
        group.close();
        for (int times = 0; times < 2; times++) {
            Patience.await("the client closing", client.closeAsync());
            Patience.await("the client closing", elsewhere(client::close));
            for (RdmaServer each : List.of(server, idle)) {
                Patience.await("a server closing", each.closeAsync());
                Patience.await("a server closing", elsewhere(each::close));
            }
        }
    }

    @Test
    void serversCloseWhileTheirLoopsEnd() {
        for (int round = 0; round < 20; round++) {
            try (RdmaEventLoopGroup loops = new RdmaEventLoopGroup(provider(), 2)) {
                RdmaServer server = RdmaServer.builder().group(loops).bind(host(), 0, ECHO);
                RdmaClient client = RdmaClient.builder().group(loops).connect(host(), server.port());
                loops.shutdownGracefully(0, 5, TimeUnit.SECONDS);
                CompletableFuture<Void> closing = server.closeAsync();
                Patience.await("the client closing", client.closeAsync());
                Patience.await("the server closing", closing);
            }
        }
    }

    @Test
    void nothingOfAClosedServerGoesOnBeingServed() {
        for (int round = 0; round < 15; round++) {
            RdmaServer server = serve();
            List<CompletableFuture<RdmaClient>> connecting = connectSome(server);
            server.close();
            assertNoneIsServed(connecting);
        }
    }

    // ---- connecting

    @Test
    void connectingToAServerThatClosesAtOnceThrowsNothingElse() {
        try (RdmaServer server =
                RdmaServer.builder().group(group).onConnect(RdmaChannel::close).bind(host(), 0, ECHO)) {
            for (int i = 0; i < 300; i++) {
                try {
                    client(server).close();
                } catch (ConnectionException lost) {
                    assertThat(lost).hasMessageContaining(String.valueOf(server.port()));
                }
            }
        }
    }

    @Test
    void endedLoopsConnectAndListenNoMore() {
        try (RdmaServer server =
                RdmaServer.builder().provider(provider()).threadsPerProvider(1).bind(host(), 0, ECHO)) {
            group.close();
            for (LadderOptions ladder : new LadderOptions[] {null, LadderOptions.DEFAULTS}) {
                RdmaClient.Builder builder = RdmaClient.builder().group(group);
                if (ladder != null) {
                    builder.ladder(ladder);
                }
                assertThat(catchThrowable(() -> builder.connect(host(), server.port())))
                        .isInstanceOf(ConnectionException.class)
                        .hasMessageContaining(String.valueOf(server.port()));
                assertThat(failure("connecting", builder.connectAsync(host(), server.port())))
                        .isInstanceOf(ConnectionException.class);
            }
            assertThat(catchThrowable(this::serve))
                    .isInstanceOf(ConnectionException.class)
                    .hasMessageContaining(host());
        }
    }

    @Test
    void endingLoopsFailWhatConnects() {
        try (RdmaServer server =
                RdmaServer.builder().provider(provider()).threadsPerProvider(1).bind(host(), 0, ECHO)) {
            for (int round = 0; round < 30; round++) {
                try (RdmaEventLoopGroup loops = new RdmaEventLoopGroup(provider(), 2)) {
                    RdmaClient.Builder builder = RdmaClient.builder().group(loops);
                    if (round % 2 == 0) {
                        builder.ladder(LadderOptions.DEFAULTS);
                    }
                    List<CompletableFuture<RdmaClient>> connecting = new ArrayList<>();
                    for (int i = 0; i < 4; i++) {
                        connecting.add(builder.connectAsync(host(), server.port()));
                    }
                    loops.shutdownGracefully(0, 5, TimeUnit.SECONDS);
                    for (CompletableFuture<RdmaClient> each : connecting) {
                        Patience.until("it has its outcome", each::isDone);
                        if (each.isCompletedExceptionally()) {
                            assertThat(each.exceptionNow()).isInstanceOf(ConnectionException.class);
                        } else {
                            each.resultNow().close();
                        }
                    }
                }
            }
        }
    }

    @Test
    void buildersAreReadAtTheCall() {
        BlockingQueue<String> calls = new LinkedBlockingQueue<>();
        RdmaServer.Builder listening =
                RdmaServer.builder().group(group).onConnect(channel -> calls.add("as it was built"));
        try (RdmaServer server = listening.bind(host(), 0, ECHO)) {
            listening.onConnect(channel -> calls.add("as it was changed"));
            RdmaClient.Builder connecting = RdmaClient.builder().group(group);
            for (int i = 0; i < 60; i++) {
                CompletableFuture<RdmaClient> first =
                        connecting.option(RdmaChannelOption.RECEIVE_DEPTH, 16).connectAsync(host(), server.port());
                connecting.option(RdmaChannelOption.RECEIVE_DEPTH, 48);
                try (RdmaClient client = Patience.await("a client", first)) {
                    assertThat(client.channel().config().getOption(RdmaChannelOption.RECEIVE_DEPTH))
                            .isEqualTo(16);
                    assertThat(Patience.take("a connection", calls)).isEqualTo("as it was built");
                }
            }
        }
    }

    @Test
    void anInterruptedThreadIsToldSo() {
        try (RdmaServer server = serve()) {
            Runnable closing = server::close;
            Patience.await("the thread", elsewhere(() -> {
                Thread.currentThread().interrupt();
                assertThat(catchThrowable(() -> client(server)))
                        .isInstanceOf(ConnectionException.class)
                        .hasCauseInstanceOf(InterruptedException.class)
                        .hasMessageContaining("interrupted");
                assertThat(Thread.currentThread().isInterrupted()).isTrue();
                closing.run();
                assertThat(Thread.interrupted()).isTrue();
            }));
        }
        try (RdmaServer server = serve();
                RdmaClient client = client(server)) {
            assertThat(Patience.await("a reply", client.request(new byte[2]))).hasSize(2);
        }
    }

    // ---- futures

    /** The server does not care for cancels, and answers what was cancelled. */
    @Test
    void repliesThatNobodyTakesAnyMoreAreReleased() {
        try (Server server = listenForFrames();
                RdmaClient client = RdmaClient.builder()
                        .group(group)
                        .connect(host(), server.address().getPort())) {
            RdmaChannel atServer = server.next();
            BlockingQueue<byte[]> requests = inbox(atServer).messages;
            int count = 0;
            for (int i = 0; i < 100; i++) {
                for (int how = 0; how < 5; how++) {
                    CompletableFuture<ByteBuf> reply =
                            RdmaFutures.toCompletable(client.request(Unpooled.wrappedBuffer(patternBytes(5000, i))));
                    int sent = how + 1;
                    if (i == 0) {
                        Patience.until(
                                "it is there, so its reply comes late",
                                () -> requests.stream()
                                                .filter(ApiSuite::isRequest)
                                                .count()
                                        == sent);
                    }
                    switch (how) {
                        case 0 -> reply.orTimeout(1, TimeUnit.MICROSECONDS);
                        case 1 -> reply.completeOnTimeout(Unpooled.EMPTY_BUFFER, 1, TimeUnit.MICROSECONDS);
                        case 2 -> reply.cancel(true);
                        case 3 -> reply.complete(Unpooled.EMPTY_BUFFER);
                        default -> reply.obtrudeException(new IllegalStateException("for a test"));
                    }
                    Patience.until("it has its outcome", reply::isDone);
                    count++;
                }
            }
            CompletableFuture<byte[]> last = client.request(new byte[1]);
            Patience.until("the last request is there", () -> {
                for (byte[] request = requests.poll(); request != null; request = requests.poll()) {
                    if (isRequest(request)) {
                        reply(atServer, request);
                    }
                }
                return last.isDone();
            });
            // Those that were given up before they were sent have no reply.
            assertThat(client.lateReplies()).isPositive().isLessThanOrEqualTo(count);
        }
    }

    @Test
    void noLoopMayWait() {
        MessageHandler silent = (exchange, message) -> {}; // so that there is something to wait for
        RdmaEventLoopGroup others = new RdmaEventLoopGroup(provider(), 1);
        try (RdmaServer server = RdmaServer.builder().group(group).bind(host(), 0, silent);
                RdmaClient client = client(server);
                RdmaServer idle = serve()) {
            List<ThrowingCallable> waits = List.of(
                    () -> RdmaClient.builder().provider(provider()).connect(host(), server.port()),
                    () -> RdmaServer.builder().provider(provider()).bind(host(), 0, ECHO),
                    () -> client.request(new byte[1]).get(),
                    () -> client.request(new byte[1]).get(1, TimeUnit.SECONDS),
                    () -> client.request(Unpooled.wrappedBuffer(new byte[1])).sync(),
                    () -> RdmaFutures.toCompletable(client.request(Unpooled.wrappedBuffer(new byte[1])))
                            .thenAccept(ByteBuf::release)
                            .join(),
                    () -> RdmaFutures.allOf(client.request(new byte[1]), client.request(new byte[1]))
                            .join(),
                    () -> RdmaFutures.toCompletable(client.channel().closeFuture())
                            .join(),
                    server::close,
                    client::close,
                    () -> RdmaClient.builder().group(others).connect(host(), server.port()));
            for (RdmaEventLoopGroup loops : List.of(others, group)) {
                for (ThrowingCallable wait : waits) {
                    CompletableFuture<Throwable> refusal = new CompletableFuture<>();
                    loops.next().execute(() -> refusal.complete(catchThrowable(wait)));
                    assertThat(Patience.await("a refusal", refusal))
                            .isInstanceOf(BlockingOperationException.class)
                            .hasMessageContaining("do not wait on")
                            .hasMessageContaining("event loop");
                }
            }
            CompletableFuture<Throwable> closing = new CompletableFuture<>();
            CountDownLatch refused = new CountDownLatch(1); // the server's loops are busy, so that there is a wait
            group.forEach(loop -> loop.execute(() -> await(refused)));
            others.next().execute(() -> {
                closing.complete(catchThrowable(() -> idle.closeAsync().join()));
                refused.countDown();
                others.close(); // which does not wait here
            });
            assertThat(Patience.await("the loop", closing)).isInstanceOf(BlockingOperationException.class);
        } finally {
            others.close();
        }
        assertThat(others.isTerminated()).isTrue();
    }
}
