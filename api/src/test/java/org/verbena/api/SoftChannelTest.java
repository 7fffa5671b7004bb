package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.PooledByteBufAllocator;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.ChannelPromise;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.ConnectionPendingException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.Framing;
import org.verbena.transport.protocol.Frame;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.UnusedPort;

/**
 * The channel suite on the soft provider, and what needs a TCP peer that misbehaves, or addresses that every machine
 * has.
 */
class SoftChannelTest extends ChannelSuite {
    @Override
    protected String provider() {
        return "soft";
    }

    @Test
    void aPeerThatNeverAnswersTimesOut() throws Exception {
        try (ServerSocket silent = new ServerSocket(0, 5, InetAddress.getByName(host()))) {
            long begin = System.nanoTime();
            ChannelFuture connecting = bootstrap()
                    .option(ChannelOption.CONNECT_TIMEOUT_MILLIS, 300)
                    .connect(host(), silent.getLocalPort());
            assertThat(failure("connecting to a silent peer", connecting))
                    .isInstanceOf(ConnectionException.TimedOut.class)
                    .hasMessageContaining(String.valueOf(silent.getLocalPort()));
            // And not after Netty's own limit of 30 s.
            assertThat(System.nanoTime() - begin)
                    .isBetween(TimeUnit.MILLISECONDS.toNanos(250), TimeUnit.SECONDS.toNanos(29));
            Patience.until("the channel is closed", () -> !connecting.channel().isOpen());
        }
    }

    @Test
    void aServerIsClosedWhenItsPortIsFree() throws Exception {
        Server server = listen();
        CompletableFuture<InetSocketAddress> bound = new CompletableFuture<>();
        server.channel.close().addListener(closed -> {
            try (ServerSocket another = new ServerSocket()) {
                another.bind(server.address());
                bound.complete((InetSocketAddress) another.getLocalSocketAddress());
            } catch (IOException e) {
                bound.completeExceptionally(e);
            }
        });
        assertThat(bound.get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS)).isEqualTo(server.address());
        server.close();
    }

    @Test
    void endingLoopsWhileTheirChannelsConnectLosesNothing() {
        try (Server server = listen();
                LoggedWarnings logged = new LoggedWarnings("io.netty")) {
            for (int round = 0; round < 20; round++) {
                RdmaEventLoopGroup own = new RdmaEventLoopGroup(provider(), 2);
                List<ChannelFuture> connecting = new ArrayList<>();
                for (int i = 0; i < 8; i++) {
                    connecting.add(bootstrap().clone(own).connect(server.address()));
                }
                Patience.turns(5 * round, own.next()); // each round another step of connecting
                done("ending", own.shutdownGracefully(0, Patience.LIMIT.toSeconds(), TimeUnit.SECONDS));
                for (ChannelFuture future : connecting) {
                    assertThat(future.awaitUninterruptibly(Patience.LIMIT.toMillis()))
                            .as("round %d: %s has an outcome", round, future)
                            .isTrue();
                    assertThat(future.channel().isOpen()).isFalse();
                }
            }
            assertThat(logged.texts()).isEmpty();
        }
    }

    @Test
    void endingTheLoopsWhileAPeerIsSilentLosesNothing() throws Exception {
        try (ServerSocket silent = new ServerSocket(0, 5, InetAddress.getByName(host()));
                LoggedWarnings logged = new LoggedWarnings("io.netty")) {
            RdmaEventLoopGroup own = new RdmaEventLoopGroup(provider(), 1);
            List<ChannelFuture> connecting = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                connecting.add(bootstrap().clone(own).connect(host(), silent.getLocalPort()));
            }
            silent.setSoTimeout((int) Patience.LIMIT.toMillis());
            try (Socket first = silent.accept()) {
                assertThat(first.isConnected()).isTrue();
                done("ending", own.shutdownGracefully(0, 10, TimeUnit.SECONDS));
            }
            for (ChannelFuture future : connecting) {
                assertThat(failure("connecting", future)).isNotNull();
            }
            assertThat(logged.texts()).isEmpty();
        }
    }

    @Test
    void aLoopThatEndsWhileItAcceptsLogsNoWarning() {
        RdmaEventLoopGroup own = new RdmaEventLoopGroup(provider(), 1);
        CompletableFuture<Channel> accepting = new CompletableFuture<>();
        CompletableFuture<Boolean> handOver = new CompletableFuture<>();
        try (LoggedWarnings logged = new LoggedWarnings("org.verbena")) {
            Channel server = done(
                            "listening",
                            new ServerBootstrap()
                                    .group(group, own)
                                    .channel(RdmaServerChannel.class)
                                    .childHandler(new ChannelInitializer<>() {
                                        @Override
                                        protected void initChannel(Channel child) {
                                            // The listener's loop hands the connection over when it is released.
                                            child.parent()
                                                    .eventLoop()
                                                    .execute(() -> Patience.await("the loop to end", handOver));
                                            accepting.complete(child);
                                        }
                                    })
                                    .bind(host(), 0))
                    .channel();
            ChannelFuture connecting = bootstrap().connect(server.localAddress());
            Channel child = Patience.await("a connection to accept", accepting);
            io.netty.util.concurrent.Future<?> ended = own.shutdownGracefully(0, 10, TimeUnit.SECONDS);
            done("the accepting channel closing", child.closeFuture());
            done("ending", ended);
            handOver.complete(true);
            assertThat(failure("connecting", connecting)).isInstanceOf(ConnectionException.class);
            done("the server closing", server.close());
            assertThat(logged.texts()).isEmpty();
        }
    }

    @Test
    void aSecondAttemptLeavesTheFirstAlone() throws Exception {
        try (Server server = listen();
                ServerSocket silent = new ServerSocket(0, 5, InetAddress.getByName(host()))) {
            RdmaChannel channel =
                    (RdmaChannel) done("registering", bootstrap().register()).channel();
            ChannelFuture first = channel.connect(silent.getLocalSocketAddress());
            assertThat(failure("the second attempt", channel.connect(server.address())))
                    .isInstanceOf(ConnectionPendingException.class);
            settle(channel, server.channel);
            assertThat(first.isDone()).isFalse();
            assertThat(channel.isOpen()).isTrue();
            done("closing", channel.close());
            assertThat(failure("the first attempt", first)).isInstanceOf(ClosedChannelException.class);
        }
    }

    @Test
    void aSecondBindLeavesTheFirstAlone() {
        try (Server server = listen()) {
            RdmaServerChannel channel = new RdmaServerChannel();
            done("registering", group.register(channel));
            InetSocketAddress any = new InetSocketAddress(host(), 0);
            ChannelPromise first = channel.newPromise();
            ChannelPromise second = channel.newPromise();
            channel.eventLoop().execute(() -> {
                channel.bind(any, first);
                channel.bind(any, second);
            });
            assertThat(failure("the second bind", second))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("bound to");
            done("the first bind", first);
            assertThat(channel.isActive()).isTrue();
            assertThat(failure("a bind once it listens", channel.bind(server.address())))
                    .isInstanceOf(IllegalStateException.class);
            assertThat(channel.isActive()).isTrue();
            done("closing", channel.close());
        }
    }

    @Test
    void asksForAnotherServerOnlyWhereThePortIsTaken() {
        try (Server server = listen()) {
            assertThat(failure("listening on a port that is taken", serving().bind(server.address())))
                    .hasMessageContaining("is another server on that port?");
        }
        assertThat(failure("listening on another host's address", serving().bind("192.0.2.1", 0)))
                .hasMessageContaining("this host has no such address")
                .hasMessageNotContaining("another server");
    }

    private ServerBootstrap serving() {
        return new ServerBootstrap()
                .group(group)
                .channel(RdmaServerChannel.class)
                .option(ChannelOption.SO_REUSEADDR, false)
                .childHandler(new ChannelInitializer<>() {
                    @Override
                    protected void initChannel(Channel child) {
                        // nobody comes
                    }
                });
    }

    @Test
    void aPeerThatIsNotRdmaIsExplained() throws Exception {
        try (ServerSocket web = new ServerSocket(0, 5, InetAddress.getByName(host()))) {
            Thread answering = Thread.ofVirtual().start(() -> {
                try (var socket = web.accept()) {
                    socket.getOutputStream().write("HTTP/1.1 400 Bad Request\r\n\r\n".getBytes());
                    socket.getOutputStream().flush();
                    socket.getInputStream().readAllBytes();
                } catch (IOException cutOff) {
                    // as it should be
                }
            });
            ChannelFuture connecting = bootstrap().connect(host(), web.getLocalPort());
            assertThat(failure("connecting to a web server", connecting))
                    .isInstanceOf(ConnectionException.class)
                    .hasMessageContaining("the peer speaks another protocol, not iWARP");
            answering.join();
        }
    }

    /** A server on a RoCE device has no TCP port: to this provider it is not there. */
    @Test
    void aRefusalNamesTheProviderThatTheServerMustUse() throws Exception {
        try (UnusedPort port = new UnusedPort(host())) {
            assertThat(failure("connecting to nobody", bootstrap().connect(host(), port.number())))
                    .isInstanceOf(ConnectionException.Rejected.class)
                    .hasMessageContaining("that it uses the soft provider or an iWARP device");
        }
    }

    @Test
    void speaksIpv6AndWildcards() throws Exception {
        boolean ipv6 = true;
        try (ServerSocket probe = new ServerSocket(0, 1, InetAddress.getByName("::1"))) {
            assertThat(probe.isBound()).isTrue();
        } catch (IOException none) {
            ipv6 = false;
        }
        assumeThat(ipv6).as("IPv6 is there").isTrue();
        for (String[] addresses : new String[][] {{"::1", "::1"}, {"::", "::1"}, {"0.0.0.0", "127.0.0.1"}}) {
            RdmaServerChannel server = (RdmaServerChannel) done(
                            "listening",
                            new ServerBootstrap()
                                    .group(group)
                                    .channel(RdmaServerChannel.class)
                                    .childHandler(
                                            new Inbox(accepted -> accepted.writeAndFlush(pattern(accepted, 77, 7))))
                                    .bind(addresses[0], 0))
                    .channel();
            int port = server.localAddress().getPort();
            RdmaChannel client = (RdmaChannel)
                    done("connecting", bootstrap().connect(addresses[1], port)).channel();
            assertThat(client.remoteAddress())
                    .isEqualTo(new InetSocketAddress(InetAddress.getByName(addresses[1]), port));
            assertThat(inbox(client).next()).isEqualTo(patternBytes(77, 7));
            done("closing", client.close());
            done("closing the server", server.close());
        }
    }

    @Test
    void keepaliveGivesUpAPeerThatIsStuck() throws Exception {
        CountDownLatch stuck = new CountDownLatch(1);
        try (Server server = listen()) {
            // Long enough for a peer that is only slow.
            RdmaChannel client = connect(bootstrap().option(RdmaChannelOption.KEEP_ALIVE_MILLIS, 1500), server);
            RdmaChannel peer = server.next();
            assertThat(peer.eventLoop()).as("the test's two loops").isNotSameAs(client.eventLoop());
            CountDownLatch answers = new CountDownLatch(1);
            client.eventLoop()
                    .execute(() -> client.connection().observe0(new Frame.Listener() {
                        @Override
                        public void onFrameSent(Frame frame) {}

                        @Override
                        public void onFrameReceived(Frame frame) {
                            if (frame.type().equals("PONG")) {
                                answers.countDown();
                            }
                        }
                    }));
            assertThat(answers.await(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                    .isTrue();
            assertThat(client.isActive()).as("a peer that answers is kept").isTrue();
            peer.eventLoop().execute(() -> {
                try {
                    stuck.await(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS);
                } catch (InterruptedException interrupted) {
                    Thread.currentThread().interrupt();
                }
            });
            done("giving up", client.closeFuture());
            assertThat(inbox(client).failures).hasSize(1);
            assertThat(inbox(client).failures.get(0)).isInstanceOf(ConnectionException.TimedOut.class);
            stuck.countDown();
            done("the peer closing", peer.closeFuture());
        }
    }

    @Test
    void aWriteToAPeerThatHasClosedFailsThoughNothingIsRead() throws Exception {
        try (Server server = listen()) {
            RdmaChannel client = connect(bootstrap().option(ChannelOption.AUTO_READ, false), server);
            RdmaChannel peer = server.next();
            peer.writeAndFlush(pattern(peer, 10, 1));
            done("the peer closing", peer.close());
            // Until the client notices that its peer has closed, it sends into the void.
            AtomicReference<Throwable> failure = new AtomicReference<>();
            Patience.until("a write fails", () -> {
                ChannelFuture write = client.writeAndFlush(pattern(client, 10, 2));
                failure.set(write.awaitUninterruptibly().cause());
                return failure.get() != null;
            });
            assertThat(failure.get()).isInstanceOf(ConnectionException.class);
            assertThat(client.isOpen()).as("a message is still to be read").isTrue();
            client.read();
            assertThat(inbox(client).next()).isEqualTo(patternBytes(10, 1));
            done("the client closing", client.closeFuture());
            assertThat(inbox(client).failures).isEmpty();
        }
    }

    @Test
    void aChosenAllocatorStays() {
        try (Server server = listen()) {
            RdmaChannel client =
                    connect(bootstrap().option(ChannelOption.ALLOCATOR, PooledByteBufAllocator.DEFAULT), server);
            RdmaChannel peer = server.next();
            assertThat(client.alloc()).isSameAs(PooledByteBufAllocator.DEFAULT);
            client.writeAndFlush(pattern(client, 50_000, 3));
            assertThat(inbox(peer).next()).isEqualTo(patternBytes(50_000, 3));
            done("closing", client.close());
        }
    }

    @Test
    void rawFramingIsOneSendAMessage() {
        ServerBootstrap serving = new ServerBootstrap()
                .childOption(RdmaChannelOption.FRAMING, Framing.RAW)
                .childOption(RdmaChannelOption.RECEIVE_BUFFER_BYTES, 1000);
        try (Server server = new Server(serving)) {
            RdmaChannel client = connect(
                    bootstrap()
                            .option(RdmaChannelOption.FRAMING, Framing.RAW)
                            .option(RdmaChannelOption.RECEIVE_BUFFER_BYTES, 1000),
                    server);
            client.writeAndFlush(pattern(client, 1000, 1));
            RdmaChannel peer = server.next();
            assertThat(inbox(peer).next()).isEqualTo(patternBytes(1000, 1));
            peer.writeAndFlush(pattern(peer, 1, 2));
            assertThat(inbox(client).next()).isEqualTo(patternBytes(1, 2));
            done("closing", client.close());
            done("the peer closing", peer.closeFuture());
        }
    }

    @Test
    void sharesReceivesBetweenTheChannelsOfALoop() {
        ServerBootstrap serving = new ServerBootstrap().childOption(RdmaChannelOption.SHARED_RECEIVE_QUEUE, true);
        try (Server server = new Server(serving)) {
            RdmaChannel[] clients = new RdmaChannel[12];
            RdmaChannel[] peers = new RdmaChannel[clients.length];
            for (int i = 0; i < clients.length; i++) {
                clients[i] = connect(server);
                peers[i] = server.next();
            }
            for (int round = 0; round < 50; round++) {
                for (int i = 0; i < clients.length; i++) {
                    clients[i].writeAndFlush(pattern(clients[i], 100 + i, round));
                }
            }
            for (int round = 0; round < 50; round++) {
                for (int i = 0; i < clients.length; i++) {
                    assertThat(inbox(peers[i]).next()).isEqualTo(patternBytes(100 + i, round));
                }
            }
            for (RdmaChannel client : clients) {
                done("closing", client.close());
            }
            for (RdmaChannel peer : peers) {
                done("the peer closing", peer.closeFuture());
            }
        }
    }
}
