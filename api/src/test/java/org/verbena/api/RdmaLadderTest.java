package org.verbena.api;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.read.ListAppender;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.util.concurrent.Future;
import java.io.IOException;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CancellationException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordingFile;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.slf4j.LoggerFactory;
import org.verbena.api.internal.ladder.LadderConnect;
import org.verbena.api.internal.ladder.LadderMemory;
import org.verbena.api.ladder.LadderCapability;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.api.ladder.LadderResult;
import org.verbena.api.ladder.LadderStatistics;
import org.verbena.api.metrics.LadderMetrics;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.PreSharedKeys;
import org.verbena.transport.ProviderUnavailableException;
import org.verbena.transport.provider.ProviderChoice;
import org.verbena.transport.provider.ProviderSet;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.UnusedPort;

/** A ladder of three rungs: a staged provider, soft, plain TCP. */
@Timeout(120)
class RdmaLadderTest {
    private static final InetSocketAddress ANY_PORT = new InetSocketAddress(InetAddress.getLoopbackAddress(), 0);

    /** So long that the test would fail by its time limit if it were waited for. */
    private static final Duration NEVER = Duration.ofHours(1);

    private static final Duration SOON = Duration.ofMillis(20);

    private final StagedProvider better = new StagedProvider();
    private final AtomicLong nanos = new AtomicLong();
    private final LadderMemory memory = new LadderMemory(nanos::get);
    private final BlockingQueue<Channel> children = new LinkedBlockingQueue<>();
    private final BlockingQueue<Channel> handed = new LinkedBlockingQueue<>();
    private final BlockingQueue<String> events = new LinkedBlockingQueue<>();
    private final List<AutoCloseable> sockets = new ArrayList<>();
    private RdmaEventLoopGroup group;
    private RdmaEventLoopGroup servers;

    @BeforeEach
    void open() {
        group = new RdmaEventLoopGroup(
                new ProviderSet(
                        List.of(new ProviderChoice(better, "for a test"), ProviderChoice.choose("soft", null)),
                        Set.of()),
                1,
                null,
                CompletionLoopOptions.DEFAULTS);
        servers = new RdmaEventLoopGroup("soft", 1);
    }

    @AfterEach
    void close() throws Exception {
        group.close();
        servers.close();
        for (AutoCloseable socket : sockets) {
            socket.close();
        }
        assertThat(group.isTerminated()).isTrue();
        assertThat(ProviderStatistics.of(better).openConnections()).isZero();
    }

    /** Sends back what comes. */
    private final class Echo extends ChannelInboundHandlerAdapter {
        @Override
        public void channelRead(ChannelHandlerContext context, Object message) {
            context.writeAndFlush(message);
        }
    }

    private ServerBootstrap streams() {
        return new ServerBootstrap().group(servers).childHandler(new ChannelInitializer<SocketChannel>() {
            @Override
            protected void initChannel(SocketChannel child) {
                children.add(child);
                child.pipeline().addLast(new Echo());
            }
        });
    }

    private Channel rdmaServer() {
        return streams()
                .channel(RdmaServerSocketChannel.class)
                .option(RdmaChannelOption.PLAIN_TCP, true)
                .bind(ANY_PORT)
                .syncUninterruptibly()
                .channel();
    }

    /** Accepts when it is told to read. */
    private Channel slowServer() {
        return streams()
                .channel(RdmaServerSocketChannel.class)
                .option(io.netty.channel.ChannelOption.AUTO_READ, false)
                .bind(ANY_PORT)
                .syncUninterruptibly()
                .channel();
    }

    private static InetSocketAddress addressOf(Channel server) {
        return (InetSocketAddress) server.localAddress();
    }

    /** Takes connections and says nothing. */
    private ServerSocket silence() throws IOException {
        ServerSocket silent = new ServerSocket(0, 10, InetAddress.getLoopbackAddress());
        sockets.add(silent);
        return silent;
    }

    private static InetSocketAddress dead(InetSocketAddress address) {
        throw new ConnectionException.Rejected("connect to " + address + ": nobody is at home", new byte[0]);
    }

    private static LadderOptions hedged(Duration delay) {
        return LadderOptions.DEFAULTS
                .withRungs(StagedProvider.NAME, "soft", Carrier.TCP)
                .withHedgeDelay(delay);
    }

    /** What the program's handler is told. */
    private final class Witness extends ChannelInboundHandlerAdapter {
        @Override
        public void handlerAdded(ChannelHandlerContext context) {
            handed.add(context.channel());
        }

        @Override
        public void channelRegistered(ChannelHandlerContext context) {
            events.add("registered");
        }

        @Override
        public void userEventTriggered(ChannelHandlerContext context, Object event) {
            if (event instanceof LadderResult result) {
                events.add("rung " + result.rung());
            }
        }

        @Override
        public void channelActive(ChannelHandlerContext context) {
            events.add("active");
            context.writeAndFlush(Unpooled.copiedBuffer("hello", US_ASCII));
        }

        @Override
        public void channelRead(ChannelHandlerContext context, Object message) {
            ByteBuf bytes = (ByteBuf) message;
            events.add(bytes.toString(US_ASCII));
            bytes.release();
        }
    }

    private Bootstrap bootstrap() {
        return new Bootstrap().group(group).handler(new ChannelInitializer<SocketChannel>() {
            @Override
            protected void initChannel(SocketChannel channel) {
                channel.pipeline().addLast(new Witness());
            }
        });
    }

    private Future<SocketChannel> climb(Bootstrap bootstrap, InetSocketAddress address, LadderOptions options) {
        return RdmaLadder.connect(bootstrap, address, options, memory, SocketChannel.class, RdmaSocketChannel::new);
    }

    private LadderResult connect(InetSocketAddress address, LadderOptions options) {
        SocketChannel channel = Patience.await("the ladder", climb(bootstrap(), address, options));
        LadderResult result = LadderResult.of(channel);
        assertThat(Carrier.of(channel)).isEqualTo(new Carrier(result.rung(), result.reason()));
        return result;
    }

    private Throwable failure(InetSocketAddress address, LadderOptions options) {
        Future<SocketChannel> connecting = climb(bootstrap(), address, options);
        assertThat(connecting.awaitUninterruptibly(Patience.LIMIT.toMillis())).isTrue();
        assertThat(connecting.isSuccess()).isFalse();
        assertThat(handed).isEmpty();
        return connecting.cause();
    }

    private InetSocketAddress freeAddress() throws IOException {
        InetAddress host = InetAddress.getLoopbackAddress();
        UnusedPort port = new UnusedPort(host.getHostAddress());
        sockets.add(port);
        return new InetSocketAddress(host, port.number());
    }

    private void awaitNoneOpen(long channels) {
        Patience.until(
                "all others are closed", () -> ProviderStatistics.of(better).openConnections() == channels);
    }

    /** The handler comes when the connection is chosen: what the server says before that waits for it. */
    @Test
    void aServerOfMessagesMaySpeakFirst() {
        Channel server = new ServerBootstrap()
                .group(servers)
                .channel(RdmaServerChannel.class)
                .childHandler(new ChannelInboundHandlerAdapter() {
                    @Override
                    public boolean isSharable() {
                        return true;
                    }

                    @Override
                    public void channelActive(ChannelHandlerContext context) {
                        context.writeAndFlush(Unpooled.copiedBuffer("welcome", US_ASCII));
                        context.close(); // and leaves at once
                    }
                })
                .bind(ANY_PORT)
                .syncUninterruptibly()
                .channel();
        for (String rung : List.of(StagedProvider.NAME, "soft")) { // on another loop, and on that of the ladder
            Bootstrap listening = new Bootstrap().group(group).handler(new ChannelInitializer<>() {
                @Override
                protected void initChannel(Channel channel) {
                    channel.pipeline().addLast(new Witness());
                }
            });
            for (int i = 0; i < 20; i++) {
                events.clear();
                RdmaLadder.connectMessages(listening, addressOf(server), LadderOptions.DEFAULTS.withRungs(rung))
                        .syncUninterruptibly();
                Patience.until("the greeting comes", () -> events.contains("welcome"));
            }
        }
        server.close().syncUninterruptibly();
    }

    @Test
    void usesTheFirstRung() {
        LadderStatistics before = LadderStatistics.of(StagedProvider.NAME);
        LadderResult result = connect(addressOf(rdmaServer()), hedged(NEVER));
        assertThat(result.rung()).isEqualTo(StagedProvider.NAME);
        assertThat(result.passed()).isEmpty();
        assertThat(result.reason()).isEqualTo("the first rung of the ladder");
        for (String event : List.of("registered", "rung better", "active", "hello")) {
            assertThat(Patience.take(event, events)).isEqualTo(event);
        }
        assertThat(handed).hasSize(1);
        assertThat(children).hasSize(1);
        assertThat(LadderStatistics.of(StagedProvider.NAME).used()).isEqualTo(before.used() + 1);
        assertThat(LadderStatistics.of(StagedProvider.NAME).passed()).isEqualTo(before.passed());
        SimpleMeterRegistry registry = new SimpleMeterRegistry();
        new LadderMetrics(hedged(NEVER)).bindTo(registry);
        assertThat(registry.get("verbena.ladder.used")
                        .tag("rung", StagedProvider.NAME)
                        .functionCounter()
                        .count())
                .isEqualTo(before.used() + 1);
    }

    @Test
    void leavesADeadRungAtOnce() {
        better.connectTo(RdmaLadderTest::dead);
        LadderStatistics before = LadderStatistics.of(StagedProvider.NAME);
        LadderResult result = connect(addressOf(rdmaServer()), hedged(NEVER));
        assertThat(result.rung()).isEqualTo("soft");
        assertThat(result.passed()).singleElement().asString().contains("better: ", "nobody is at home");
        assertThat(result.attempts()).extracting(LadderResult.Attempt::rung).containsExactly("better", "soft");
        assertThat(result.attempts().getFirst().failure()).contains("nobody is at home");
        assertThat(result.attempts().getLast().failure()).isEmpty();
        assertThat(LadderStatistics.of(StagedProvider.NAME).passed()).isEqualTo(before.passed() + 1);
    }

    @Test
    void leavesARungWhoseProviderDoesNotServe() {
        better.serve(false);
        InetSocketAddress address = addressOf(rdmaServer());
        LadderResult result = connect(address, hedged(NEVER));
        assertThat(result.rung()).isEqualTo("soft");
        assertThat(result.passed()).singleElement().asString().contains("does not serve " + address);
        assertThat(better.connects()).isZero();
        better.serve(true);
        assertThat(connect(address, hedged(NEVER)).rung())
                .as("that is asked each time, and not remembered")
                .isEqualTo(StagedProvider.NAME);
    }

    @Test
    void waitsForASilentRungNoLongerThanTheDelay() throws Exception {
        ServerSocket silent = silence();
        better.connectTo(address -> (InetSocketAddress) silent.getLocalSocketAddress());
        // Plain TCP would be up first, where soft takes longer than the delay.
        LadderResult result = connect(addressOf(rdmaServer()), hedged(SOON).withMinimumRung("soft"));
        assertThat(result.rung()).isEqualTo("soft");
        assertThat(result.passed()).singleElement().asString().contains("no connection within 20 ms");
        assertThat(result.attempts().getFirst().took()).isGreaterThanOrEqualTo(SOON);
        assertThat(result.attempts().getLast().began()).isGreaterThanOrEqualTo(SOON);
        try (Socket loser = silent.accept()) {
            loser.setSoTimeout((int) Patience.LIMIT.toMillis());
            loser.getInputStream().transferTo(java.io.OutputStream.nullOutputStream()); // it ends
        }
        awaitNoneOpen(0);
        assertThat(handed).hasSize(1);
    }

    @Test
    void usesASlowRungThatIsUpWithinTheDelay() {
        Channel slow = slowServer();
        Channel other = rdmaServer();
        better.connectTo(address -> addressOf(slow));
        Future<SocketChannel> connecting = climb(bootstrap(), addressOf(other), hedged(NEVER));
        Patience.until("it connects", () -> better.connects() == 1);
        assertThat(connecting.isDone()).isFalse();
        slow.read();
        SocketChannel channel = Patience.await("the ladder", connecting);
        assertThat(LadderResult.of(channel).rung()).isEqualTo(StagedProvider.NAME);
        assertThat(children).allSatisfy(child -> assertThat(child.parent()).isEqualTo(slow));
    }

    @Test
    void closesALateLoser() {
        Channel slow = slowServer();
        Channel other = rdmaServer();
        better.connectTo(address -> addressOf(slow));
        LadderResult result = connect(addressOf(other), hedged(SOON).withMinimumRung("soft"));
        assertThat(result.rung()).isEqualTo("soft");
        slow.read();
        awaitNoneOpen(0);
        assertThat(handed).hasSize(1);
    }

    /** Two rungs that connect at about the same time: one of them is used, the other is closed, in either order. */
    @Test
    void givesOneOfTwoThatComeUpTogether() {
        InetSocketAddress address = addressOf(rdmaServer());
        LadderOptions close = hedged(Duration.ofMillis(1)).withForgetAfter(Duration.ZERO);
        List<SocketChannel> given = new ArrayList<>();
        for (int i = 0; i < 200; i++) {
            given.add(Patience.await("the ladder", climb(bootstrap(), address, close)));
        }
        assertThat(given)
                .doesNotHaveDuplicates()
                .allSatisfy(channel -> assertThat(channel.isActive()).isTrue());
        assertThat(handed).containsExactlyElementsOf(given);
        long ofBetter = given.stream()
                .filter(channel -> LadderResult.of(channel).rung().equals(StagedProvider.NAME))
                .count();
        awaitNoneOpen(ofBetter);
        given.forEach(channel -> channel.close().syncUninterruptibly());
        awaitNoneOpen(0);
    }

    @Test
    void saysWhyEachRungFailed() throws Exception {
        better.connectTo(RdmaLadderTest::dead);
        InetSocketAddress address = freeAddress();
        for (int i = 1; i <= 2; i++) {
            Throwable failure = failure(address, hedged(NEVER));
            assertThat(failure)
                    .isInstanceOf(ConnectException.class)
                    .hasMessageContaining("no rung of the ladder connected")
                    .hasMessageContaining("better: ")
                    .hasMessageContaining("nobody is at home")
                    .hasMessageContaining("soft: ")
                    .hasMessageContaining("tcp: ")
                    .hasMessageNotContaining("passed over");
            assertThat(failure.getSuppressed()).hasSize(3);
            assertThat(better.connects())
                    .as("nothing is remembered of a server that is down")
                    .isEqualTo(i);
        }
    }

    @Test
    void remembersADeadRungForAWhile() {
        better.connectTo(RdmaLadderTest::dead);
        InetSocketAddress address = addressOf(rdmaServer());
        LadderOptions options = hedged(NEVER).withForgetAfter(Duration.ofMinutes(10));
        assertThat(connect(address, options).rung()).isEqualTo("soft");
        better.connectTo(java.util.function.UnaryOperator.identity());
        nanos.addAndGet(TimeUnit.MINUTES.toNanos(10) - 1);
        LadderResult second = connect(address, options);
        assertThat(second.rung()).isEqualTo("soft");
        assertThat(second.passed()).singleElement().asString().contains("passed over 599 s ago", "nobody is at home");
        assertThat(better.connects()).isEqualTo(1);
        assertThat(connect(addressOf(rdmaServer()), options).rung())
                .as("at another address")
                .isEqualTo(StagedProvider.NAME);
        nanos.addAndGet(1);
        LadderResult third = connect(address, options);
        assertThat(third.rung()).isEqualTo(StagedProvider.NAME);
        assertThat(better.connects()).isEqualTo(3);
    }

    /** A rung that is remembered as dead is the last, but it is tried. */
    @Test
    void triesADeadRungLast() throws Exception {
        InetSocketAddress address = freeAddress();
        memory.failed(
                address, StagedProvider.NAME, "it was dead", Duration.ofHours(1).toNanos());
        Channel server = rdmaServer();
        better.connectTo(any -> addressOf(server));
        LadderResult result = connect(address, hedged(NEVER));
        assertThat(result.rung()).isEqualTo(StagedProvider.NAME);
        assertThat(memory.failure(address, StagedProvider.NAME)).isNull();
    }

    @Test
    void remembersABoundedNumberOfAddresses() {
        for (int port = 1; port <= LadderMemory.MAX_ADDRESSES + 1; port++) {
            memory.failed(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), "soft", "dead", 1000);
        }
        assertThat(memory.size()).isEqualTo(LadderMemory.MAX_ADDRESSES);
        assertThat(memory.failure(new InetSocketAddress(InetAddress.getLoopbackAddress(), 1), "soft"))
                .isNull();
        assertThat(memory.failure(new InetSocketAddress(InetAddress.getLoopbackAddress(), 2), "soft"))
                .isNotNull();
    }

    @Test
    void neverGoesBelowTheMinimum() {
        better.connectTo(RdmaLadderTest::dead);
        Channel server = rdmaServer();
        Throwable failure = failure(addressOf(server), hedged(SOON).withMinimumRung(StagedProvider.NAME));
        assertThat(failure)
                .hasMessageContaining("none below better is allowed")
                .hasMessageContaining("nobody is at home")
                .hasMessageNotContaining("soft: ");
        assertThat(failure.getSuppressed()).singleElement().asString().contains("nobody is at home");
        assertThat(children).isEmpty();
    }

    @Test
    void leavesARungThatLacksWhatIsNeeded() {
        better.connectWith(options -> options.with(o -> o.readDepth = 0));
        InetSocketAddress address = addressOf(rdmaServer());
        LadderOptions needing = hedged(NEVER).withNeeds(LadderCapability.ATOMICS);
        LadderResult result = connect(address, needing);
        assertThat(result.rung()).isEqualTo("soft");
        assertThat(result.passed()).singleElement().asString().isEqualTo("better: it has no atomics");
        awaitNoneOpen(0);
        assertThat(connect(address, hedged(NEVER)).rung())
                .as("of a client that does not need it")
                .isEqualTo(StagedProvider.NAME);
    }

    @Test
    void plainTcpIsTheLastOfAStream() {
        Channel server = streams()
                .channel(NioServerSocketChannel.class)
                .bind(ANY_PORT)
                .syncUninterruptibly()
                .channel();
        better.connectTo(RdmaLadderTest::dead);
        try (LoggedWarnings warnings = new LoggedWarnings("io.netty")) {
            Bootstrap bootstrap = bootstrap().option(RdmaChannelOption.REGISTERED_ALLOCATOR, true);
            SocketChannel channel = Patience.await("the ladder", climb(bootstrap, addressOf(server), hedged(SOON)));
            assertThat(LadderResult.of(channel).rung()).isEqualTo(Carrier.TCP);
            assertThat(LadderResult.of(channel).passed())
                    .extracting(LadderResult.Passed::rung)
                    .containsExactly(StagedProvider.NAME, "soft");
            assertThat(Carrier.of(channel).name()).isEqualTo(Carrier.TCP);
            for (String event : List.of("registered", "rung tcp", "active", "hello")) {
                assertThat(Patience.take(event, events)).isEqualTo(event);
            }
            assertThat(warnings.texts()).isEmpty();
        }
    }

    @Test
    void plainTcpIsNotTriedWhereItCannotDo() throws Exception {
        Channel server = streams()
                .channel(NioServerSocketChannel.class)
                .bind(ANY_PORT)
                .syncUninterruptibly()
                .channel();
        better.connectTo(RdmaLadderTest::dead);
        LadderOptions tcp = hedged(SOON).withRungs(StagedProvider.NAME, Carrier.TCP);
        assertThat(failure(addressOf(server), tcp.withNeeds(LadderCapability.IMMEDIATE_DATA)))
                .hasMessageContaining("tcp: plain TCP has nothing of");
        Future<SocketChannel> withKeys = climb(
                bootstrap().option(RdmaChannelOption.PRE_SHARED_KEYS, PreSharedKeys.of("key", new byte[32])),
                addressOf(server),
                tcp);
        assertThat(withKeys.awaitUninterruptibly(Patience.LIMIT.toMillis())).isTrue();
        assertThat(withKeys.cause()).hasMessageContaining("tcp: plain TCP cannot prove a pre-shared key");
        assertThat(children).isEmpty();
    }

    @Test
    void cancellingClosesWhatIsUnderWay() throws Exception {
        ServerSocket silent = silence();
        better.connectTo(address -> (InetSocketAddress) silent.getLocalSocketAddress());
        Future<SocketChannel> connecting = climb(
                bootstrap(),
                (InetSocketAddress) silence().getLocalSocketAddress(),
                hedged(Duration.ofMillis(1)).withMinimumRung("soft"));
        silent.accept().close();
        connecting.cancel(true);
        awaitNoneOpen(0);
        assertThatThrownBy(connecting::get).isInstanceOf(CancellationException.class);
        assertThat(handed).isEmpty();
    }

    @Test
    void theGroupEndsDuringAnAttempt() throws Exception {
        ServerSocket silent = silence();
        Future<SocketChannel> connecting = climb(
                bootstrap(),
                (InetSocketAddress) silent.getLocalSocketAddress(),
                hedged(NEVER).withMinimumRung("soft"));
        Socket begun = silent.accept();
        group.close();
        assertThat(connecting.isDone()).isTrue();
        assertThat(connecting.isSuccess()).isFalse();
        assertThat(handed).isEmpty();
        begun.close();
    }

    @Test
    void theConnectTimeoutIsForAllRungs() throws Exception {
        InetSocketAddress silent = (InetSocketAddress) silence().getLocalSocketAddress();
        Future<SocketChannel> connecting = climb(
                bootstrap().option(io.netty.channel.ChannelOption.CONNECT_TIMEOUT_MILLIS, 500),
                silent,
                hedged(SOON).withMinimumRung("soft"));
        assertThat(connecting.awaitUninterruptibly(Patience.LIMIT.toMillis())).isTrue();
        assertThat(connecting.cause().getSuppressed())
                .hasSize(2)
                .allSatisfy(cause -> assertThat(cause).hasMessageContaining("not established within"));
        awaitNoneOpen(0);
    }

    @Test
    void logsWhatChangesForAnAddress() {
        Logger logger = (Logger) LoggerFactory.getLogger(LadderConnect.class);
        ListAppender<ILoggingEvent> lines = new ListAppender<>();
        lines.start();
        logger.addAppender(lines);
        logger.setLevel(ch.qos.logback.classic.Level.INFO);
        try {
            better.connectTo(RdmaLadderTest::dead);
            InetSocketAddress address = addressOf(rdmaServer());
            LadderOptions options = hedged(NEVER);
            connect(address, options);
            connect(address, options);
            nanos.addAndGet(TimeUnit.HOURS.toNanos(1));
            better.connectTo(java.util.function.UnaryOperator.identity());
            connect(address, options);
            connect(address, options);
            assertThat(lines.list)
                    .extracting(ILoggingEvent::getFormattedMessage)
                    .satisfiesExactly(
                            first -> assertThat(first).contains("reached with soft", "better: ", "nobody is at home"),
                            second -> assertThat(second).contains("reached with better", "the first rung"));
        } finally {
            logger.setLevel(null);
            logger.detachAppender(lines);
        }
    }

    @Test
    void recordsTheOutcome() throws Exception {
        better.connectTo(RdmaLadderTest::dead);
        Path file = Files.createTempFile("ladder", ".jfr");
        try (Recording recording = new Recording()) {
            recording.enable("org.verbena.Ladder");
            recording.start();
            connect(addressOf(rdmaServer()), hedged(NEVER));
            recording.stop();
            recording.dump(file);
            assertThat(RecordingFile.readAllEvents(file))
                    .filteredOn(event -> event.getEventType().getName().equals("org.verbena.Ladder"))
                    .singleElement()
                    .satisfies(event -> {
                        assertThat(event.getString("rung")).isEqualTo("soft");
                        assertThat(event.getString("passed")).contains("better: ", "nobody is at home");
                    });
        } finally {
            Files.delete(file);
        }
    }

    @Test
    void messagesClimbToo() {
        better.connectTo(RdmaLadderTest::dead);
        try (RdmaServer server = RdmaServer.builder()
                .group(servers)
                .bind("127.0.0.1", 0, MessageHandler.ofBytes((exchange, message) -> exchange.reply(message)))) {
            try (RdmaClient client =
                    RdmaClient.builder().group(group).ladder(hedged(NEVER)).connect("127.0.0.1", server.port())) {
                assertThat(client.request("hello".getBytes(US_ASCII)))
                        .succeedsWithin(Patience.LIMIT)
                        .isEqualTo("hello".getBytes(US_ASCII));
                assertThat(client.provider()).isEqualTo("soft");
                assertThat(client.ladder().passed()).singleElement().asString().contains("nobody is at home");
            }
            assertThatThrownBy(() -> RdmaClient.builder()
                            .group(group)
                            .ladder(hedged(NEVER).withMinimumRung(StagedProvider.NAME))
                            .connect("127.0.0.1", server.port()))
                    .isInstanceOf(ConnectionException.class)
                    .hasMessageContaining("none below better is allowed");
        }
    }

    @Test
    void aClientMayClimbOnLoopsOfItsOwn() {
        try (RdmaServer server = RdmaServer.builder()
                        .group(servers)
                        .bind("127.0.0.1", 0, MessageHandler.ofBytes((exchange, message) -> exchange.reply(message)));
                RdmaClient client = RdmaClient.builder().provider("ladder").connect("127.0.0.1", server.port());
                RdmaClient forced = RdmaClient.builder().provider("soft").connect("127.0.0.1", server.port())) {
            assertThat(client.request(new byte[1])).succeedsWithin(Patience.LIMIT);
            assertThat(client.ladder().rung()).isEqualTo("soft");
            assertThat(client.ladder().passed())
                    .singleElement()
                    .asString()
                    .contains("verbs: it is not on the class path");
            assertThat(forced.ladder()).isNull();
            try (RdmaEventLoopGroup shared = new RdmaEventLoopGroup("ladder", 1);
                    RdmaClient sharing = RdmaClient.builder().group(shared).connect("127.0.0.1", server.port())) {
                assertThat(sharing.ladder().rung()).isEqualTo("soft");
            }
            assertThatThrownBy(() -> RdmaClient.builder()
                            .ladder(LadderOptions.DEFAULTS)
                            .provider("verbs")
                            .connect("127.0.0.1", server.port()))
                    .isInstanceOf(ProviderUnavailableException.class);
        }
    }

    /** The program's mistake is told; the climb does not wait for a handler that cannot be added. */
    @Test
    void saysThatAHandlerCannotBeAddedTwice() {
        InetSocketAddress address = addressOf(rdmaServer());
        Bootstrap once = new Bootstrap().group(group).handler(new Witness());
        Patience.await("the ladder", climb(once, address, hedged(NEVER)));
        Future<SocketChannel> second = climb(once, address, hedged(NEVER));
        assertThat(second.awaitUninterruptibly(Patience.LIMIT.toMillis())).isTrue();
        assertThat(second.cause()).hasMessageContaining("@Sharable");
        assertThat(handed).hasSize(1);
        awaitNoneOpen(1);
    }

    /**
     * A rung that is remembered as dead begins last; that it is not connected yet when a lower one connects proves
     * nothing.
     */
    @Test
    void doesNotBlameARungThatHadNoTime() throws Exception {
        ServerSocket silent = silence();
        better.connectTo(any -> (InetSocketAddress) silent.getLocalSocketAddress());
        Channel slow = slowServer();
        InetSocketAddress address = addressOf(slow);
        memory.failed(address, StagedProvider.NAME, "it was dead", 1000);
        nanos.set(500);
        LadderOptions noTcp = hedged(Duration.ofSeconds(2)).withMinimumRung("soft");
        Future<SocketChannel> connecting = climb(bootstrap(), address, noTcp);
        Patience.until("the last has begun", () -> better.connects() == 1);
        slow.read();
        SocketChannel channel = Patience.await("the ladder", connecting);
        assertThat(LadderResult.of(channel).rung()).isEqualTo("soft");
        assertThat(LadderResult.of(channel).passed())
                .singleElement()
                .asString()
                .contains("it was dead")
                .doesNotContain("within");
        nanos.set(1000);
        assertThat(memory.failure(address, StagedProvider.NAME)).isNull();
    }

    @Test
    void refusesABootstrapThatChooses() {
        assertThatThrownBy(() -> climb(bootstrap().channel(RdmaSocketChannel.class), ANY_PORT, hedged(SOON)))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("a ladder chooses");
        assertThatThrownBy(() -> LadderOptions.DEFAULTS.withRungs("soft").withMinimumRung("verbs"))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("not among the rungs");
    }
}
