package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.bootstrap.Bootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import java.io.InputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketAddress;
import java.nio.channels.ClosedChannelException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.verbena.api.ApiSuite;
import org.verbena.api.Inbox;
import org.verbena.api.RdmaChannel;
import org.verbena.api.RdmaChannelOption;
import org.verbena.api.RdmaClient;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaSocketChannel;
import org.verbena.api.queuepair.QueuePairExchangeAddress;
import org.verbena.api.queuepair.TcpQueuePairExchange;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.Framing;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.PreSharedKeys;
import org.verbena.transport.QueuePairEnd;
import org.verbena.transport.QueuePairExchange;
import org.verbena.transport.QueuePairRoute;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.RemoteMemory;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.UnusedPort;

/**
 * Channels that are connected by hand, with each other and with programs in C. On rxe: iWARP has no such queue pairs.
 */
@Tag("lab")
class ExchangedQueuePairsTest extends ApiSuite {
    private static final AtomicInteger NEXT_PORT = new AtomicInteger(18700);
    private static final String DEVICE = LabDevice.RXE.deviceName();
    private static final QueuePairRoute ROUTE = QueuePairRoute.ofDevice(DEVICE);
    private static final String HOST = "127.0.0.1";

    /** As the programs have it without options. */
    private static final int PING_PONG_BYTES = 4096;

    private static final int PING_PONGS = 1000;

    /** As C's buffer. */
    private static final int TEXT_BYTES = 15;

    private long queuePairsBefore;

    @Override
    protected String provider() {
        return "verbs";
    }

    @Override
    protected String host() {
        return LabDevice.RXE.address();
    }

    /** The queue pairs of this process, as the kernel lists them. */
    private static long queuePairs() {
        String mine = " pid " + ProcessHandle.current().pid() + " ";
        return PeerProgram.capture("rdma", "resource", "show", "qp")
                .lines()
                .filter(line -> line.contains(mine))
                .count();
    }

    @BeforeEach
    void countQueuePairs() {
        queuePairsBefore = queuePairs();
    }

    @AfterEach
    void queuePairsAreGone() {
        // The channels' close is done before their queue pairs are destroyed.
        Patience.until("all queue pairs are destroyed", () -> queuePairs() <= queuePairsBefore);
    }

    private Bootstrap raw() {
        return bootstrap().option(RdmaChannelOption.FRAMING, Framing.RAW);
    }

    private static SocketAddress to(QueuePairExchange exchange) {
        return new QueuePairExchangeAddress(ROUTE, exchange);
    }

    private static TcpQueuePairExchange accepting() {
        return TcpQueuePairExchange.accepting(new InetSocketAddress(HOST, 0));
    }

    private static TcpQueuePairExchange connecting(TcpQueuePairExchange server) {
        return TcpQueuePairExchange.connecting(server.localAddress());
    }

    private static RdmaChannel connected(ChannelFuture connecting) {
        return (RdmaChannel) done("connecting by hand", connecting).channel();
    }

    /** Two channels, the first of which answers. */
    private RdmaChannel[] pair(Bootstrap bootstrap) {
        TcpQueuePairExchange server = accepting();
        ChannelFuture answering = bootstrap.connect(to(server));
        RdmaChannel client = connected(bootstrap.connect(to(connecting(server))));
        return new RdmaChannel[] {connected(answering), client};
    }

    // ---- with C's ibv_rc_pingpong

    /** Sends back what comes. */
    private static final class Echo extends ChannelInboundHandlerAdapter {
        @Override
        public void channelRead(ChannelHandlerContext context, Object message) {
            context.writeAndFlush(message);
        }
    }

    @Test
    void servesPingPongOfC() throws Exception {
        PingPongExchange exchange = new PingPongExchange();
        ChannelFuture answering = bootstrap(new Echo())
                .option(RdmaChannelOption.FRAMING, Framing.RAW)
                .connect(to(exchange));
        String said = PeerProgram.run(
                Patience.LIMIT,
                "ibv_rc_pingpong",
                "-d",
                DEVICE,
                "-g",
                PingPongTest.gidIndex(),
                "-p",
                "" + exchange.port(),
                "-c",
                HOST);
        assertThat(said).contains(PING_PONGS + " iters in").doesNotContain("invalid data");
        RdmaChannel channel = connected(answering);
        assertThat(channel.remoteAddress().getAddress().getHostAddress()).isEqualTo(LabDevice.RXE.address());
        assertThat(channel.capabilities().reportsPeerEnd()).isFalse();
        done("closing", channel.close());
    }

    /** Sends, waits for the answer, and sends again. */
    private static final class Pings extends ChannelInboundHandlerAdapter {
        private final int count;
        private final CompletableFuture<Void> over = new CompletableFuture<>();
        private int answers;

        Pings(int count) {
            this.count = count;
        }

        @Override
        public void channelActive(ChannelHandlerContext context) {
            ping(context);
        }

        private static void ping(ChannelHandlerContext context) {
            context.writeAndFlush(pattern(context.channel(), PING_PONG_BYTES, 0));
        }

        @Override
        public void channelRead(ChannelHandlerContext context, Object message) {
            ByteBuf answer = (ByteBuf) message;
            int bytes = answer.readableBytes();
            answer.release();
            answers++;
            if (bytes != PING_PONG_BYTES) {
                over.completeExceptionally(new AssertionError("an answer of " + bytes + " bytes"));
            } else if (answers == count) {
                over.complete(null);
            } else {
                ping(context);
            }
        }
    }

    private static PeerProgram pingPongServer(int port) throws Exception {
        PeerProgram server =
                PeerProgram.start("ibv_rc_pingpong", "-d", DEVICE, "-g", PingPongTest.gidIndex(), "-p", "" + port);
        PingPongTest.awaitTcpListener(port);
        return server;
    }

    private RdmaChannel ping(int port, Pings pings) {
        PingPongExchange exchange = new PingPongExchange(new InetSocketAddress(HOST, port));
        return connected(
                bootstrap(pings).option(RdmaChannelOption.FRAMING, Framing.RAW).connect(to(exchange)));
    }

    @Test
    void isServedByPingPongOfC() throws Exception {
        int port = NEXT_PORT.incrementAndGet();
        try (PeerProgram server = pingPongServer(port)) {
            Pings pings = new Pings(PING_PONGS);
            RdmaChannel channel = ping(port, pings);
            Patience.await("all answers", pings.over);
            assertThat(server.awaitExit(Patience.LIMIT)).as(server.output()).isZero();
            assertThat(server.output()).contains(PING_PONGS + " iters in");
            done("closing", channel.close());
        }
    }

    /** A send that nobody acknowledges is the only sign that it has ended. */
    @Test
    void aKilledPeerShowsWhenASendFails() throws Exception {
        int port = NEXT_PORT.incrementAndGet();
        try (PeerProgram server = pingPongServer(port)) {
            Pings pings = new Pings(1);
            RdmaChannel channel = ping(port, pings);
            Patience.await("an answer", pings.over);
            server.kill();
            server.awaitExit(Patience.LIMIT);
            assertThat(channel.isActive()).isTrue();
            Throwable lost = failure("a send to nobody", channel.writeAndFlush(pattern(channel, 64, 0)));
            assertThat(lost).hasMessageContaining("TRANSPORT_RETRY_EXCEEDED");
            Patience.until("the channel is closed", () -> !channel.isOpen());
        }
    }

    // ---- with RDMA_RC_example

    private static String example(Path folder) throws Exception {
        Path source = folder.resolve("rc_example.c");
        try (InputStream text = PingPongTest.class.getResourceAsStream("rc_example.c")) {
            Files.copy(text, source);
        }
        String program = folder.resolve("rc_example").toString();
        PeerProgram.run(
                Patience.LIMIT, "gcc", "-std=gnu11", "-Wall", "-Werror", source.toString(), "-o", program, "-libverbs");
        return program;
    }

    private static void put(MemorySegment memory, String text) {
        memory.fill((byte) 0);
        memory.setString(0, text);
    }

    private static byte[] textOf(String text) {
        return java.util.Arrays.copyOf(text.getBytes(StandardCharsets.US_ASCII), TEXT_BYTES);
    }

    @Test
    void speaksAsTheExampleOfTheManual(@TempDir Path folder) throws Exception {
        String program = example(folder);
        try (Arena arena = Arena.ofShared()) {
            MemorySegment memory = arena.allocate(64);
            RcExampleExchange exchange = new RcExampleExchange(memory);
            ChannelFuture answering = raw().connect(to(exchange));
            try (PeerProgram c =
                    PeerProgram.start(program, DEVICE, PingPongTest.gidIndex(), "" + exchange.port(), HOST)) {
                RdmaChannel channel = connected(answering);
                put(memory, "a text to read");
                done("a send", channel.writeAndFlush(channel.alloc().buffer().writeBytes(textOf("a message sent"))));
                Patience.await("point R", exchange.synchronize('R'));
                Patience.await("point W", exchange.synchronize('W'));
                assertThat(c.awaitExit(Patience.LIMIT)).as(c.output()).isZero();
                assertThat(c.output())
                        .contains("Message is: 'a message sent'", "Contents of server's buffer: 'a text to read'");
                assertThat(memory.getString(0)).isEqualTo("RDMA write ope");
                done("closing", channel.close());
            }
            exchange.close();

            int port = NEXT_PORT.incrementAndGet();
            try (PeerProgram c = PeerProgram.start(program, DEVICE, PingPongTest.gidIndex(), "" + port)) {
                PingPongTest.awaitTcpListener(port);
                RcExampleExchange client = new RcExampleExchange(new InetSocketAddress(HOST, port));
                RdmaChannel channel = connected(raw().connect(to(client)));
                assertThat(inbox(channel).next()).isEqualTo(textOf("SEND operation"));
                Patience.await("point R", client.synchronize('R'));
                RemoteMemory its = client.peerMemory(TEXT_BYTES);
                ByteBuf into = channel.alloc().buffer(TEXT_BYTES, TEXT_BYTES);
                done("a read", channel.read(its, 0, into));
                assertThat(into.toString(0, TEXT_BYTES - 1, StandardCharsets.US_ASCII))
                        .isEqualTo("RDMA read oper");
                into.release();
                ByteBuf from = channel.alloc().buffer().writeBytes(textOf("a text written"));
                done("a write", channel.write(its, 0, from));
                from.release();
                Patience.await("point W", client.synchronize('W'));
                assertThat(c.awaitExit(Patience.LIMIT)).as(c.output()).isZero();
                assertThat(c.output()).contains("Contents of server buffer: 'a text written'");
                client.close();
                done("closing", channel.close());
            }
        }
    }

    // ---- with each other

    @Test
    void carriesMessagesAndOneSidedOperations() throws Exception {
        RdmaChannel[] ends = pair(bootstrap());
        RdmaChannel server = ends[0];
        RdmaChannel client = ends[1];
        for (int bytes : new int[] {0, 1, 100, 20_000, 3 << 20}) {
            done("a message", client.writeAndFlush(pattern(client, bytes, bytes)));
            assertThat(inbox(server).next()).isEqualTo(patternBytes(bytes, bytes));
            done("a message", server.writeAndFlush(pattern(server, bytes, 1)));
            assertThat(inbox(client).next()).isEqualTo(patternBytes(bytes, 1));
        }
        try (Arena arena = Arena.ofShared()) {
            MemorySegment memory = arena.allocate(4096, 8);
            try (RegisteredMemory region = server.memory()
                    .register(memory, MemoryDomain.Access.REMOTE_READ, MemoryDomain.Access.REMOTE_WRITE)) {
                RemoteMemory remote = region.remote();
                ByteBuf from = pattern(client, 100, 5);
                done("a write", client.write(remote, 10, from));
                from.release();
                assertThat(memory.asSlice(10, 100).toArray(ValueLayout.JAVA_BYTE))
                        .isEqualTo(patternBytes(100, 5));
                ByteBuf into = client.alloc().buffer(100, 100);
                done("a read", client.read(remote, 10, into));
                assertThat(into.getByte(7)).isEqualTo(patternByte(7, 5));
                into.release();
            }
        }
        done("closing", client.close());
        Patience.until("the other end is closed, too", () -> !server.isOpen());
        assertThat(inbox(server).failures).isEmpty();
        assertThat(inbox(client).failures).isEmpty();
    }

    @Test
    void bothMayCloseAtOnce() {
        RdmaChannel[] ends = pair(bootstrap());
        ChannelFuture one = ends[0].close();
        ChannelFuture other = ends[1].close();
        done("closing", one);
        done("closing", other);
        assertThat(inbox(ends[0]).failures).isEmpty();
        assertThat(inbox(ends[1]).failures).isEmpty();
    }

    /** A program's own exchange, here two futures. */
    private static final class OwnExchange implements QueuePairExchange {
        private final CompletableFuture<byte[]> told;
        private final CompletableFuture<byte[]> its;
        private final boolean answers;

        OwnExchange(CompletableFuture<byte[]> told, CompletableFuture<byte[]> its, boolean answers) {
            this.told = told;
            this.its = its;
            this.answers = answers;
        }

        @Override
        public CompletionStage<QueuePairEnd> exchange(QueuePairEnd own, MemoryDomain memory) {
            told.complete(own.toBytes());
            return its.thenApply(QueuePairEnd::ofBytes);
        }

        @Override
        public boolean answers() {
            return answers;
        }
    }

    @Test
    void anExchangeMayBeTheProgramsOwn() throws Exception {
        CompletableFuture<byte[]> first = new CompletableFuture<>();
        CompletableFuture<byte[]> second = new CompletableFuture<>();
        QueuePairRoute byAddress = QueuePairRoute.ofAddress(InetAddress.getByName(LabDevice.RXE.address()));
        ChannelFuture answering =
                bootstrap().connect(new QueuePairExchangeAddress(byAddress, new OwnExchange(first, second, true)));
        RdmaChannel client = connected(bootstrap()
                .connect(new QueuePairExchangeAddress(
                        byAddress.withMtuBytes(512), new OwnExchange(second, first, false))));
        RdmaChannel server = connected(answering);
        assertThat(server.localAddress().getAddress()).isEqualTo(byAddress.address());
        done("a message", client.writeAndFlush(pattern(client, 5000, 1)));
        assertThat(inbox(server).next()).isEqualTo(patternBytes(5000, 1));
        done("closing", server.close());
        Patience.until("the other end is closed, too", () -> !client.isOpen());
    }

    @Test
    void carriesRequestsBothWays() throws Exception {
        TcpQueuePairExchange server = accepting();
        RdmaClient.Builder builder =
                RdmaClient.builder().group(group).onMessage((exchange, message) -> exchange.reply(message.retain()));
        CompletableFuture<RdmaClient> answering =
                CompletableFuture.supplyAsync(() -> builder.connect(new QueuePairExchangeAddress(ROUTE, server)));
        try (RdmaClient one = builder.connect(new QueuePairExchangeAddress(ROUTE, connecting(server)));
                RdmaClient other = Patience.await("the other end", answering)) {
            assertThat(Patience.await("a reply", one.request(new byte[] {1, 2, 3})))
                    .containsExactly(1, 2, 3);
            assertThat(Patience.await("a reply", other.request(new byte[] {4}))).containsExactly(4);
        }
    }

    @Test
    void carriesStreams() {
        Bootstrap bootstrap = new Bootstrap()
                .group(group)
                .channel(RdmaSocketChannel.class)
                .handler(new ChannelInitializer<>() {
                    @Override
                    protected void initChannel(Channel channel) {
                        channel.pipeline().addLast(new Echo());
                    }
                });
        java.util.concurrent.BlockingQueue<Integer> came = new java.util.concurrent.LinkedBlockingQueue<>();
        TcpQueuePairExchange server = accepting();
        ChannelFuture answering = bootstrap.connect(to(server));
        Channel client = done(
                        "connecting",
                        bootstrap
                                .clone()
                                .handler(new ChannelInboundHandlerAdapter() {
                                    @Override
                                    public void channelRead(ChannelHandlerContext context, Object message) {
                                        came.add(((ByteBuf) message).readableBytes());
                                        ((ByteBuf) message).release();
                                    }
                                })
                                .connect(to(connecting(server))))
                .channel();
        done("a write", client.writeAndFlush(client.alloc().buffer().writeBytes(new byte[1000])));
        for (int bytes = 0; bytes < 1000; ) {
            bytes += Patience.take("bytes", came);
        }
        done("closing", client.close());
        Channel other = done("connecting", answering).channel();
        Patience.until("the other end is closed, too", () -> !other.isOpen());
    }

    /** A peer that goes without a word is noticed by the keepalive. */
    @Test
    void aSilentEndIsNoticedByTheKeepalive() {
        RdmaChannel[] ends = pair(bootstrap().option(RdmaChannelOption.KEEP_ALIVE_MILLIS, 500));
        ends[0].deregister();
        Patience.until("the other end is closed, too", () -> !ends[1].isOpen());
        assertThat(inbox(ends[1]).failures).hasSize(1);
    }

    @Test
    void provesPreSharedKeys() {
        PreSharedKeys keys = PreSharedKeys.of("one", new byte[32]);
        RdmaChannel[] ends = pair(bootstrap().option(RdmaChannelOption.PRE_SHARED_KEYS, keys));
        done("closing", ends[1].close());

        TcpQueuePairExchange server = accepting();
        ChannelFuture answering =
                bootstrap().option(RdmaChannelOption.PRE_SHARED_KEYS, keys).connect(to(server));
        ChannelFuture keyless = bootstrap().connect(to(connecting(server)));
        assertThat(failure("connecting without a key", answering))
                .isInstanceOf(ConnectionException.class)
                .hasMessageContaining("a pre-shared key is required");
        assertThat(failure("being refused", keyless)).isInstanceOf(ConnectionException.class);
    }

    // ---- what goes wrong

    @Test
    void refusesAPeerWithAnotherFraming() {
        TcpQueuePairExchange server = accepting();
        ChannelFuture answering = bootstrap().connect(to(server));
        ChannelFuture foreign = raw().connect(to(connecting(server)));
        assertThat(failure("a peer with framing RAW", answering))
                .isInstanceOf(ConnectionException.class)
                .hasMessageContaining("not a peer with framing MESSAGE");
        assertThat(failure("being refused", foreign)).isInstanceOf(ConnectionException.class);
    }

    @Test
    void garbageEndsTheAttempt() throws Exception {
        ChannelFuture connecting;
        try (ServerSocket listening = new ServerSocket(0);
                Socket stranger = new Socket(HOST, listening.getLocalPort())) {
            connecting = bootstrap().connect(to(TcpQueuePairExchange.accepted(listening.accept())));
            stranger.getOutputStream()
                    .write("GET / HTTP/1.1\r\nHost: localhost\r\n".repeat(4).getBytes());
            Throwable refused = failure("garbage", connecting);
            assertThat(refused).isInstanceOf(ConnectionException.class);
            assertThat(refused).isNotInstanceOf(ConnectionException.TimedOut.class);
        }
        Channel ended = connecting.channel();
        Patience.until("the channel is closed", () -> !ended.isOpen());
    }

    @Test
    void aPeerThatClosesEndsTheAttempt() throws Exception {
        try (ServerSocket listening = new ServerSocket(0)) {
            Socket peer = new Socket(HOST, listening.getLocalPort());
            ChannelFuture connecting = raw().connect(to(TcpQueuePairExchange.accepted(listening.accept())));
            peer.close();
            assertThat(failure("a peer that closes", connecting))
                    .isInstanceOf(ConnectionException.class)
                    .hasMessageContaining("the peer closed the connection");
        }
    }

    @Test
    void nobodyListens() throws Exception {
        try (UnusedPort port = new UnusedPort(HOST)) {
            TcpQueuePairExchange exchange = TcpQueuePairExchange.connecting(new InetSocketAddress(HOST, port.number()));
            assertThat(failure("connecting to nobody", bootstrap().connect(to(exchange))))
                    .isInstanceOf(ConnectionException.Rejected.class)
                    .hasMessageContaining(String.valueOf(port.number()));
        }
    }

    @Test
    void aPeerThatNeverAnswersTimesOut() throws Exception {
        try (ServerSocket silent = new ServerSocket(0)) {
            InetSocketAddress address = new InetSocketAddress(HOST, silent.getLocalPort());
            ChannelFuture connecting = bootstrap()
                    .option(ChannelOption.CONNECT_TIMEOUT_MILLIS, 1000)
                    .connect(to(TcpQueuePairExchange.connecting(address)));
            try (Socket accepted = silent.accept()) {
                assertThat(failure("a silent peer", connecting))
                        .isInstanceOf(ConnectionException.TimedOut.class)
                        .hasMessageContaining(DEVICE);
                accepted.setSoTimeout((int) Patience.LIMIT.toMillis());
                accepted.getInputStream().readAllBytes(); // until this end closes it
            }
        }
    }

    @Test
    void closingGivesUpTheExchange() throws Exception {
        try (ServerSocket silent = new ServerSocket(0)) {
            InetSocketAddress address = new InetSocketAddress(HOST, silent.getLocalPort());
            ChannelFuture connecting = bootstrap().connect(to(TcpQueuePairExchange.connecting(address)));
            try (Socket accepted = silent.accept()) {
                done("closing", connecting.channel().close());
                assertThat(failure("an attempt that was closed", connecting))
                        .isInstanceOf(ClosedChannelException.class);
                accepted.setSoTimeout((int) Patience.LIMIT.toMillis());
                accepted.getInputStream().readAllBytes();
            }
        }
    }

    @Test
    void anExchangeThatThrowsEndsTheAttempt() {
        AtomicInteger givenUp = new AtomicInteger();
        QueuePairExchange broken = new QueuePairExchange() {
            @Override
            public CompletionStage<QueuePairEnd> exchange(QueuePairEnd own, MemoryDomain memory) {
                throw new IllegalStateException("no carrier pigeon");
            }

            @Override
            public void giveUp() {
                givenUp.incrementAndGet();
            }
        };
        assertThat(failure("a broken exchange", bootstrap().connect(to(broken))))
                .isInstanceOf(ConnectionException.class)
                .hasMessageContaining("no carrier pigeon");
        assertThat(givenUp).hasValue(1);
    }

    @Test
    void refusesDevicesThatCannot() throws Exception {
        for (QueuePairRoute siw : new QueuePairRoute[] {
            QueuePairRoute.ofDevice(LabDevice.SIW.deviceName()),
            QueuePairRoute.ofAddress(InetAddress.getByName(LabDevice.SIW.address()))
        }) {
            assertThat(failure("iWARP by hand", bootstrap().connect(new QueuePairExchangeAddress(siw, accepting()))))
                    .isInstanceOf(ConnectionException.class)
                    .hasMessageContaining("siw0 is iWARP");
        }
        assertThat(failure(
                        "no such device",
                        bootstrap()
                                .connect(new QueuePairExchangeAddress(QueuePairRoute.ofDevice("mlx5_7"), accepting()))))
                .isInstanceOf(ConnectionException.Unreachable.class)
                .hasMessageContaining("no RDMA device mlx5_7")
                .hasMessageContaining(DEVICE);
        assertThat(failure(
                        "no such GID",
                        bootstrap()
                                .connect(new QueuePairExchangeAddress(
                                        QueuePairRoute.ofDevice(DEVICE, 1, 200), accepting()))))
                .isInstanceOf(ConnectionException.class);
        assertThat(failure(
                        "packets that are too long",
                        bootstrap().connect(new QueuePairExchangeAddress(ROUTE.withMtuBytes(4096), accepting()))))
                .isInstanceOf(ConnectionException.class)
                .hasMessageContaining("active MTU");
        RdmaEventLoopGroup soft = new RdmaEventLoopGroup("soft", 1);
        try {
            assertThat(failure(
                            "soft by hand",
                            new Bootstrap()
                                    .group(soft)
                                    .channel(RdmaChannel.class)
                                    .handler(new Inbox(channel -> {}))
                                    .connect(to(accepting()))))
                    .isInstanceOf(UnsupportedOperationException.class)
                    .hasMessageContaining("provider soft has no queue pairs");
        } finally {
            soft.shutdownGracefully(0, 5, TimeUnit.SECONDS).awaitUninterruptibly();
        }
    }
}
