package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.IoEventLoop;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.verbena.api.client.Target;
import org.verbena.api.internal.server.AcceptedHandshakes;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.ProtocolException;
import org.verbena.transport.RequestException;
import org.verbena.transport.provider.ProviderChoice;
import org.verbena.transport.spi.HandshakeLimits;
import org.verbena.transport.spi.IncomingConnection;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.Listener;
import org.verbena.transport.spi.ListenerHandler;
import org.verbena.transport.spi.Patience;

/** A network between the ends that drops everything for a while. Where it can be cut decides who runs this. */
public abstract class NetworkCutSuite extends ApiSuite {
    private static final Duration LONG = Duration.ofMinutes(10);
    private static final Duration SHORT = Duration.ofSeconds(1);

    /** From now on no packet arrives at {@link #host()} or comes from there. */
    protected abstract void cut();

    /** Packets arrive again. */
    protected abstract void mend();

    /** How many connected queue pairs the server's device has; 0 if there is no device. */
    protected abstract int queuePairs();

    /** The ends give a connection up while the network is cut. */
    @Test
    protected void clientsComeBackAfterACut() {
        cutFor(Duration.ofSeconds(3), 2000);
    }

    /** The ends have the defaults: whether a connection is given up is the provider's and the kernel's. */
    @Test
    @Tag("full")
    protected void clientsComeBackAfterALongCut() {
        cutFor(Duration.ofSeconds(30), null);
    }

    private RdmaClient client(boolean idempotent, int port, Integer keepAliveMillis) {
        RdmaClient.Builder builder =
                RdmaClient.builder().group(group).idempotent(idempotent).requestTimeout(LONG);
        if (keepAliveMillis != null) {
            builder.option(RdmaChannelOption.KEEP_ALIVE_MILLIS, keepAliveMillis);
        }
        RdmaClient client = builder.target(Target.of(host(), port)).start();
        Patience.await("it is ready", client.whenReady());
        return client;
    }

    private void cutFor(Duration time, Integer keepAliveMillis) {
        int before = queuePairs();
        AtomicBoolean holds = new AtomicBoolean();
        BlockingQueue<Exchange> held = new LinkedBlockingQueue<>();
        RdmaServer.Builder serving = RdmaServer.builder().group(group);
        if (keepAliveMillis != null) {
            serving.option(RdmaChannelOption.KEEP_ALIVE_MILLIS, keepAliveMillis);
        }
        try (RdmaServer server = serving.bind(host(), lastingPort(), (exchange, message) -> {
            if (holds.get()) {
                held.add(exchange);
            } else {
                exchange.reply(message.retain());
            }
        })) {
            try (RdmaClient once = client(false, server.port(), keepAliveMillis);
                    RdmaClient again = client(true, server.port(), keepAliveMillis)) {
                for (RdmaClient each : List.of(once, again)) {
                    assertThat(Patience.await("a reply", each.request(new byte[3])))
                            .hasSize(3);
                }
                holds.set(true);
                CompletableFuture<byte[]> onceUnderWay = once.request(new byte[1]);
                CompletableFuture<byte[]> againUnderWay = again.request(new byte[2]);
                Patience.until("both are under way", () -> held.size() >= 2);
                holds.set(false);
                cut();
                try {
                    endInTime(time, once, again);
                } finally {
                    mend();
                }
                for (RdmaClient each : List.of(once, again)) {
                    Patience.until("it is back", () -> isServed(each));
                }
                held.forEach(exchange -> exchange.reply(new byte[1]));
                assertThat(Patience.await("what may be repeated", againUnderWay))
                        .hasSizeBetween(1, 2);
                Patience.until("what may not be repeated has ended", onceUnderWay::isDone);
                if (onceUnderWay.isCompletedExceptionally()) {
                    assertThat(onceUnderWay.exceptionNow())
                            .isInstanceOfSatisfying(
                                    ConnectionException.class,
                                    lost -> assertThat(lost.mayHaveBegun()).isTrue());
                }
                // The server finds out by its keepalive, which may take two intervals.
                untilGivenUp(server);
            }
        }
        Patience.until("no queue pair is left", () -> queuePairs() == before);
    }

    private static void untilGivenUp(RdmaServer server) {
        for (int i = 0; i < 2 && server.connections().size() > 2; i++) {
            long begin = System.nanoTime();
            while (server.connections().size() > 2 && System.nanoTime() - begin < Patience.LIMIT.toNanos()) {
                Patience.sleep(10);
            }
        }
        assertThat(server.connections().size()).as("one of each client").isEqualTo(2);
    }

    private static boolean isServed(RdmaClient client) {
        CompletableFuture<byte[]> request = client.request(new byte[3], SHORT);
        Patience.until("it has ended", request::isDone);
        return !request.isCompletedExceptionally();
    }

    /** Requests of this time and more; all end though the network is still cut. */
    private static void endInTime(Duration time, RdmaClient... clients) {
        List<CompletableFuture<byte[]>> requests = new ArrayList<>();
        long begin = System.nanoTime();
        while (System.nanoTime() - begin < time.toNanos()) {
            for (RdmaClient each : clients) {
                requests.add(each.request(new byte[3], SHORT));
            }
            Patience.sleep(100);
        }
        Patience.until("all have ended", () -> requests.stream().allMatch(CompletableFuture::isDone));
        assertThat(requests)
                .allSatisfy(request -> assertThat(request)
                        .isCompletedExceptionally()
                        .satisfies(failed -> assertThat(failed.exceptionNow())
                                .isInstanceOfAny(RequestException.TimedOut.class, ConnectionException.class)));
    }

    /** Cuts the network when the server has a connection request, before it answers. */
    private RdmaEventLoopGroup cuttingLoops(HandshakeLimits limits, AtomicBoolean cuts) {
        return new RdmaEventLoopGroup(
                new ProviderChoice(
                        new DelegatingProvider(
                                ProviderChoice.choose(provider(), null).provider()) {
                            @Override
                            public HandshakeLimits handshakeLimits() {
                                return limits;
                            }

                            @Override
                            public Listener listen(
                                    IoEventLoop loop,
                                    InetSocketAddress localAddress,
                                    ListenOptions options,
                                    ListenerHandler handler) {
                                return super.listen(loop, localAddress, options, cutting(handler, cuts));
                            }
                        },
                        "cuts"),
                2,
                null,
                CompletionLoopOptions.DEFAULTS);
    }

    private ListenerHandler cutting(ListenerHandler inner, AtomicBoolean cuts) {
        return new ListenerHandler() {
            @Override
            public void onListening(Listener listener) {
                inner.onListening(listener);
            }

            @Override
            public void onConnectRequest(Listener listener, IncomingConnection connection) {
                if (cuts.getAndSet(false)) {
                    cut();
                }
                inner.onConnectRequest(listener, connection);
            }

            @Override
            public void onPlainConnection(Listener listener, SocketChannel channel, ByteBuffer firstBytes) {
                inner.onPlainConnection(listener, channel, firstBytes);
            }

            @Override
            public void onClosed(Listener listener, Throwable cause) {
                inner.onClosed(listener, cause);
            }
        };
    }

    /** Keeps a server's connections from before their handshake. */
    @ChannelHandler.Sharable
    private static final class Children extends ChannelInboundHandlerAdapter {
        final BlockingQueue<Channel> all = new LinkedBlockingQueue<>();

        @Override
        public void handlerAdded(ChannelHandlerContext context) {
            all.add(context.channel());
        }
    }

    @Test
    protected void aConnectionThatIsCutInItsHandshakeIsFreedInTime() {
        int before = queuePairs();
        AtomicBoolean cuts = new AtomicBoolean();
        Children children = new Children();
        try (RdmaEventLoopGroup loops = cuttingLoops(new HandshakeLimits(100, 100, 5_000), cuts);
                Server server = new Server(new ServerBootstrap(), loops, children)) {
            AcceptedHandshakes handshakes = server.channel.reception().handshakes();
            cuts.set(true);
            CompletableFuture<RdmaClient> connecting = RdmaClient.builder()
                    .group(group)
                    .failFast()
                    .connectTimeout(Duration.ofSeconds(20))
                    .connectAsync(host(), server.address().getPort());
            try {
                Channel child = Patience.take("a connection", children.all);
                Patience.until("it is counted", () -> handshakes.size() == 1);
                done("it is given up", child.closeFuture());
                assertThat(child.isActive()).isFalse();
                Patience.until("it counts no more", () -> handshakes.size() == 0);
                Patience.until("its queue pair is gone", () -> queuePairs() == before);
            } finally {
                mend();
            }
            Patience.until("the client has an outcome", connecting::isDone);
            // If its request was repeated after the cut, it has found that the server is a plain channel.
            assertThat(connecting.exceptionNow()).isInstanceOfAny(ConnectionException.class, ProtocolException.class);
            RdmaChannel next = connect(server);
            Patience.until("no handshake is left", () -> handshakes.size() == 0);
            assertThat(next.isActive()).isTrue();
            done("closing", next.close());
        }
        Patience.until("no queue pair is left", () -> queuePairs() == before);
    }
}
