package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.ChannelOutboundHandlerAdapter;
import io.netty.channel.EventLoop;
import io.netty.channel.FixedRecvByteBufAllocator;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.WriteBufferWaterMark;
import io.netty.channel.nio.NioIoHandler;
import io.netty.channel.socket.ChannelInputShutdownEvent;
import io.netty.channel.socket.ChannelInputShutdownReadComplete;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.channel.socket.nio.NioSocketChannel;
import java.io.IOException;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.NotYetConnectedException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.api.internal.ladder.LadderMemory;
import org.verbena.api.internal.memory.ChannelBuffers;
import org.verbena.api.ladder.LadderCapability;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.api.ladder.LadderResult;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.PreSharedKeys;
import org.verbena.transport.buffer.RdmaByteBufAllocator;
import org.verbena.transport.provider.ProviderChoice;
import org.verbena.transport.provider.ProviderSet;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RdmaProvider;

/**
 * What a channel that climbs does beyond what {@link StreamSuite} demands of all. Its rungs: a staged provider, which
 * shares its loop; soft, which has another; plain TCP, which shares it.
 */
@Timeout(120)
class LadderSocketChannelTest {
    private static final InetSocketAddress ANY_PORT = new InetSocketAddress(InetAddress.getLoopbackAddress(), 0);
    private static final Duration NEVER = Duration.ofHours(1);

    /** More than an end may take from one that is not read. */
    private static final int MUCH = 64 << 20;

    static {
        LeakWatch.start();
    }

    private static int leaksBefore;

    private final StagedProvider better = new StagedProvider();
    private final BlockingQueue<Channel> children = new LinkedBlockingQueue<>();
    private final BlockingQueue<String> events = new LinkedBlockingQueue<>();
    private final AtomicBoolean swallowReads = new AtomicBoolean();
    private RdmaEventLoopGroup group;
    private RdmaEventLoopGroup servers;
    private volatile long received;

    @BeforeAll
    static void countLeaks() {
        leaksBefore = LeakWatch.count();
    }

    @AfterAll
    static void nothingLeaked() {
        assertThat(LeakWatch.leaksSince(leaksBefore)).as("leaked buffers").isEmpty();
    }

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
    void close() {
        group.close();
        servers.close();
        Patience.until("all registered buffers are home", () -> ChannelBuffers.usedBytes() == 0);
    }

    private InetSocketAddress server(String rung) {
        ServerBootstrap serving = new ServerBootstrap().group(servers).childHandler(new ChannelInitializer<>() {
            @Override
            protected void initChannel(Channel child) {
                children.add(child);
            }
        });
        serving.channel(rung.equals(Carrier.TCP) ? NioServerSocketChannel.class : RdmaServerSocketChannel.class);
        return (InetSocketAddress)
                serving.bind(ANY_PORT).syncUninterruptibly().channel().localAddress();
    }

    private Channel child() {
        return Patience.take("a connection", children);
    }

    /** Writes down what it is told. */
    private final class Witness extends ChannelInboundHandlerAdapter {
        @Override
        public void channelRegistered(ChannelHandlerContext context) {
            events.add("registered");
        }

        @Override
        public void channelActive(ChannelHandlerContext context) {
            events.add("active");
            context.fireChannelActive();
        }

        @Override
        @SuppressWarnings("NonAtomicOperationOnVolatileField") // only the loop writes it
        public void channelRead(ChannelHandlerContext context, Object message) {
            received += ((ByteBuf) message).readableBytes();
            ((ByteBuf) message).release();
            events.add("read");
        }

        @Override
        public void userEventTriggered(ChannelHandlerContext context, Object event) {
            events.add(event instanceof LadderResult result ? "rung " + result.rung() : String.valueOf(event));
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
            events.add("failure");
        }

        @Override
        public void channelInactive(ChannelHandlerContext context) {
            events.add("inactive");
        }

        @Override
        public void channelUnregistered(ChannelHandlerContext context) {
            events.add("unregistered");
        }
    }

    private Bootstrap bootstrap(LadderOptions options, ChannelHandler... first) {
        return new Bootstrap()
                .group(group)
                .channelFactory(() -> new LadderSocketChannel(new LadderMemory(System::nanoTime)))
                .option(RdmaChannelOption.LADDER, options)
                .handler(new ChannelInitializer<SocketChannel>() {
                    @Override
                    protected void initChannel(SocketChannel channel) {
                        channel.pipeline().addLast(first).addLast(new Witness());
                    }
                });
    }

    private static LadderOptions rung(String name) {
        return LadderOptions.DEFAULTS.withRungs(name);
    }

    private static LadderOptions all() {
        return LadderOptions.DEFAULTS
                .withRungs(StagedProvider.NAME, "soft", Carrier.TCP)
                .withHedgeDelay(NEVER);
    }

    private LadderSocketChannel connect(Bootstrap bootstrap, InetSocketAddress address) {
        ChannelFuture connecting = bootstrap.connect(address);
        Patience.await("connecting", connecting);
        return (LadderSocketChannel) connecting.channel();
    }

    private static Throwable failure(ChannelFuture future) {
        assertThat(future.awaitUninterruptibly(Patience.LIMIT.toMillis())).isTrue();
        assertThat(future.isSuccess()).isFalse();
        return future.cause();
    }

    private void awaitEvents(String... expected) {
        for (String event : expected) {
            assertThat(Patience.take(event, events)).isEqualTo(event);
        }
    }

    private static ByteBuf bytes(int count) {
        return Unpooled.wrappedBuffer(new byte[count]);
    }

    private void settle(Channel... channels) {
        for (int i = 0; i < 3; i++) {
            for (Channel channel : channels) {
                Patience.turns(channel.eventLoop());
                SocketChannel below = channel instanceof LadderSocketChannel ladder ? ladder.rung() : null;
                if (below != null) {
                    Patience.turns(below.eventLoop());
                }
            }
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {StagedProvider.NAME, "soft", Carrier.TCP})
    void isWhatItsRungIs(String rung) {
        LadderSocketChannel client = connect(bootstrap(rung(rung)), server(rung));
        Channel child = child();
        awaitEvents("registered", "rung " + rung, "active");
        assertThat(LadderResult.of(client).rung()).isEqualTo(rung);
        assertThat(Carrier.of(client).name()).isEqualTo(rung);
        assertThat(client.localAddress()).isEqualTo(child.remoteAddress());
        assertThat(client.remoteAddress()).isEqualTo(child.localAddress());
        boolean isPlain = rung.equals(Carrier.TCP);
        assertThat(client.rung()).isInstanceOf(isPlain ? NioSocketChannel.class : RdmaSocketChannel.class);
        assertThat(client.rung().eventLoop().equals(client.eventLoop())).isNotEqualTo(rung.equals("soft"));
        assertThat(client.alloc() instanceof RdmaByteBufAllocator).isNotEqualTo(isPlain);
        Patience.await("a write", client.writeAndFlush(client.alloc().buffer().writeZero(3000)));
        if (client.rung() instanceof RdmaSocketChannel rdma) {
            assertThat(rdma.statistics().copiedBytes()).isZero();
        }
        Patience.await("closing", client.close());
        awaitEvents("inactive", "unregistered");
        assertThat(client.isInputShutdown() && client.isOutputShutdown()).isTrue();
        Patience.until("the rung is closed", () -> !client.rung().isOpen());
    }

    @Test
    void climbsAndSaysWhy() {
        better.connectTo(address -> {
            throw new ConnectionException.Rejected("nobody is at home", new byte[0]);
        });
        LadderSocketChannel client = connect(bootstrap(all()), server("soft"));
        awaitEvents("registered", "rung soft", "active");
        assertThat(LadderResult.of(client).passed()).singleElement().asString().contains("nobody is at home");
    }

    /** As a socket reports it: connected, and then closed. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aPeerThatClosesAtOnceIsNoFailureToConnect(boolean halfClosure) {
        Bootstrap bootstrap = bootstrap(rung("soft")).option(ChannelOption.ALLOW_HALF_CLOSURE, halfClosure);
        InetSocketAddress address = server("soft");
        RdmaProvider soft = group.providers().choices().getLast().provider();
        EventLoop loop = group.next();
        CompletableFuture<ChannelFuture> connecting = new CompletableFuture<>();
        loop.execute(() -> {
            connecting.complete(bootstrap.connect(address));
            loop.execute(
                    () -> { // behind the beginning of the climb, and before its end
                        Channel child = child();
                        Patience.until("it is accepted", child::isActive);
                        child.close();
                        Patience.until(
                                "the rung has ended",
                                () -> ProviderStatistics.of(soft).openConnections() == 0);
                    });
        });
        Patience.await("connecting", Patience.await("the attempt", connecting));
        awaitEvents("registered", "rung soft", "active");
        if (halfClosure) {
            awaitEvents(
                    ChannelInputShutdownEvent.INSTANCE.toString(),
                    ChannelInputShutdownReadComplete.INSTANCE.toString());
        }
        awaitEvents("inactive", "unregistered");
        assertThat(events).isEmpty();
    }

    /** What the peer had sent is there to be read, also when it comes with the end. */
    @Test
    void nothingIsLostOfAPeerThatSendsAndClosesAtOnce() {
        InetSocketAddress address = server("soft");
        EventLoop loop = group.next();
        CompletableFuture<ChannelFuture> connecting = new CompletableFuture<>();
        loop.execute(() -> {
            connecting.complete(bootstrap(rung("soft")).connect(address));
            loop.execute(() -> {
                Channel child = child();
                Patience.until("it is accepted", child::isActive);
                Patience.await("a write", child.writeAndFlush(bytes(3000)));
                child.close();
                settle(child);
            });
        });
        Patience.await("connecting", Patience.await("the attempt", connecting));
        awaitEvents("registered", "rung soft", "active", "read", "inactive", "unregistered");
        assertThat(received).isEqualTo(3000);
    }

    @Test
    void goesNoLowerThanItMay() {
        better.connectTo(address -> {
            throw new ConnectionException.Rejected("nobody is at home", new byte[0]);
        });
        ChannelFuture connecting =
                bootstrap(all().withMinimumRung(StagedProvider.NAME)).connect(server("soft"));
        assertThat(failure(connecting))
                .isInstanceOf(ConnectException.class)
                .hasMessageContaining("none below better is allowed")
                .hasMessageContaining("nobody is at home");
        Patience.await("closing", connecting.channel().closeFuture());
        awaitEvents("registered", "unregistered");
        assertThat(children).isEmpty();
    }

    @Test
    void provesKeysOrDoesNotConnect() {
        Bootstrap bootstrap = bootstrap(rung(Carrier.TCP))
                .option(RdmaChannelOption.PRE_SHARED_KEYS, PreSharedKeys.of("key", new byte[32]));
        assertThat(failure(bootstrap.connect(server(Carrier.TCP))))
                .hasMessageContaining("plain TCP cannot prove a pre-shared key");
        assertThat(children).isEmpty();
        assertThat(failure(bootstrap(rung(Carrier.TCP).withNeeds(LadderCapability.ATOMICS))
                        .connect(server(Carrier.TCP))))
                .hasMessageContaining("plain TCP has nothing of");
    }

    /** Its peer is held up, and no more than one batch comes for each read. */
    @ParameterizedTest
    @ValueSource(strings = {StagedProvider.NAME, "soft", Carrier.TCP})
    void readsOnlyWhenAsked(String rung) {
        int maxMessages = 2;
        LadderSocketChannel client = connect(
                bootstrap(rung(rung))
                        .option(ChannelOption.AUTO_READ, false)
                        .option(
                                ChannelOption.RECVBUF_ALLOCATOR,
                                new FixedRecvByteBufAllocator(65_536).maxMessagesPerRead(maxMessages)),
                server(rung));
        Channel child = child();
        long written = 0;
        while (child.isWritable() && written < MUCH) {
            child.writeAndFlush(bytes(50_000));
            written += 50_000;
            if (!child.isWritable()) {
                settle(child, client);
            }
        }
        assertThat(written).as("bytes until the peer is full").isLessThan(MUCH);
        assertThat(received).isZero();
        long before = 0;
        for (int i = 0; i < 3; i++) {
            client.read();
            long min = before;
            Patience.until("a batch", () -> received > min);
            settle(child, client);
            assertThat(received - before).as("one read is one batch").isLessThanOrEqualTo(maxMessages * 65_536L);
            before = received;
        }
        assertThat(received).isLessThan(written);
        client.config().setAutoRead(true);
        long expected = written;
        Patience.until("all of it", () -> received == expected);
    }

    /** What has come by then waits; a socket stops at once. */
    @ParameterizedTest
    @ValueSource(strings = {StagedProvider.NAME, "soft", Carrier.TCP})
    void deliversNothingMoreWhenAutoReadIsSwitchedOff(String rung) {
        AtomicBoolean stops = new AtomicBoolean(true);
        LadderSocketChannel client = connect(
                bootstrap(rung(rung), new ChannelInboundHandlerAdapter() {
                            @Override
                            public void channelRead(ChannelHandlerContext context, Object message) {
                                if (stops.get()) {
                                    context.channel().config().setAutoRead(false);
                                }
                                context.fireChannelRead(message);
                            }

                            @Override
                            public void channelReadComplete(ChannelHandlerContext context) {
                                context.fireUserEventTriggered("complete");
                            }
                        })
                        .option(ChannelOption.RECVBUF_ALLOCATOR, new FixedRecvByteBufAllocator(1000)),
                server(rung));
        Channel child = child();
        for (int i = 0; i < 100; i++) {
            child.writeAndFlush(bytes(1000));
        }
        awaitEvents("registered", "rung " + rung, "active", "read", "complete");
        settle(child, client);
        assertThat(events).isEmpty();
        long first = received;
        client.read();
        awaitEvents("read", "complete");
        settle(child, client);
        assertThat(events).isEmpty();
        assertThat(received).isGreaterThan(first).isLessThan(100_000);
        stops.set(false);
        client.config().setAutoRead(true);
        Patience.until("all of it", () -> received == 100_000);
    }

    /** A handler may keep requests to read from the transport, though auto-read is on. */
    @ParameterizedTest
    @ValueSource(strings = {StagedProvider.NAME, "soft", Carrier.TCP})
    void readsNothingThatAHandlerDoesNotLetItRead(String rung) {
        swallowReads.set(true);
        LadderSocketChannel client = connect(
                bootstrap(rung(rung), new ChannelOutboundHandlerAdapter() {
                    @Override
                    public void read(ChannelHandlerContext context) {
                        if (!swallowReads.get()) {
                            context.read();
                        }
                    }
                }),
                server(rung));
        Channel child = child();
        Patience.await("a write", child.writeAndFlush(bytes(1000)));
        settle(child, client);
        assertThat(received).isZero();
        swallowReads.set(false);
        client.read();
        Patience.until("it", () -> received == 1000);
    }

    @ParameterizedTest
    @ValueSource(strings = {StagedProvider.NAME, "soft", Carrier.TCP})
    void completesEachWriteOnceAndInOrder(String rung) {
        LadderSocketChannel client = connect(bootstrap(rung(rung)), server(rung));
        Channel child = child();
        BlockingQueue<Integer> done = new LinkedBlockingQueue<>();
        List<ChannelFuture> writes = new ArrayList<>();
        for (int i = 0; i < 300; i++) {
            int number = i;
            ChannelFuture write = client.write(bytes(i * 37 % 5000));
            write.addListener(sent -> done.add(number));
            writes.add(write);
            if (i % 100 == 50) {
                assertThat(write.cancel(true)).isTrue();
            }
            if (i % 7 == 0) {
                client.flush();
            }
        }
        client.write(bytes(10), client.voidPromise());
        assertThat(failure(client.write("text"))).isInstanceOf(UnsupportedOperationException.class);
        client.flush();
        Patience.until("all outcomes", () -> done.size() == 300);
        List<Integer> sent = done.stream().filter(i -> i % 100 != 50).toList();
        assertThat(sent).isSorted().hasSize(297);
        assertThat(writes).filteredOn(ChannelFuture::isSuccess).hasSize(297);
        Patience.until("it is empty", () -> client.unsafe().outboundBuffer().totalPendingWriteBytes() == 0);
        Patience.await("closing", child.close());
        Patience.await("closing", client.closeFuture());
        assertThat(failure(client.writeAndFlush(bytes(10)))).isInstanceOf(ClosedChannelException.class);
    }

    /** What waits counts for the channel's own writability, whatever the rung's buffer takes. */
    @ParameterizedTest
    @ValueSource(strings = {StagedProvider.NAME, "soft", Carrier.TCP})
    void isWritableByItsOwnMarks(String rung) {
        LadderSocketChannel client = connect(
                bootstrap(rung(rung))
                        .option(ChannelOption.WRITE_BUFFER_WATER_MARK, new WriteBufferWaterMark(20_000, 40_000)),
                server(rung));
        Channel child = child();
        Patience.turns(client.eventLoop()); // the rung's own marks have come up
        Patience.until("it is writable at first", client::isWritable);
        client.write(bytes(50_000));
        Patience.until("it is full", () -> !client.isWritable() && client.bytesBeforeUnwritable() == 0);
        client.flush();
        Patience.until("it has sent it", client::isWritable);
        child.config().setAutoRead(false);
        Patience.turns(child.eventLoop());
        long written = 0;
        ChannelFuture last = client.newSucceededFuture();
        while (client.isWritable() && written < MUCH) {
            last = client.writeAndFlush(bytes(10_000));
            written += 10_000;
            if (!client.isWritable()) {
                settle(client, child);
            }
        }
        assertThat(written).isLessThan(MUCH);
        assertThat(last.isDone()).isFalse();
        child.config().setAutoRead(true);
        Patience.await("the last write", last);
        Patience.until("it is writable", client::isWritable);
    }

    @ParameterizedTest
    @ValueSource(strings = {StagedProvider.NAME, "soft", Carrier.TCP})
    void aLostPeerFailsWhatIsPending(String rung) {
        LadderSocketChannel client = connect(bootstrap(rung(rung)), server(rung));
        Channel child = child();
        awaitEvents("registered", "rung " + rung, "active");
        child.config().setAutoRead(false);
        Patience.turns(child.eventLoop());
        List<ChannelFuture> writes = new ArrayList<>();
        long written = 0;
        while (client.isWritable() && written < MUCH) {
            writes.add(client.writeAndFlush(bytes(50_000)));
            written += 50_000;
            if (!client.isWritable()) {
                settle(client, child);
            }
        }
        writes.add(client.write(bytes(10)));
        child.config().setOption(ChannelOption.SO_LINGER, 0);
        Patience.await("closing", child.close());
        assertThat(failure(writes.getLast())).isInstanceOf(IOException.class);
        Patience.await("closing", client.closeFuture());
        Patience.until("all have an outcome", () -> writes.stream().allMatch(ChannelFuture::isDone));
        Patience.until("it is told", () -> events.contains("unregistered"));
        assertThat(events.stream().filter("inactive"::equals)).hasSize(1);
    }

    /** An end that is not read is not noticed, but a loss is, and nothing that came before it is lost. */
    @ParameterizedTest
    @ValueSource(strings = {StagedProvider.NAME, "soft"})
    void aLossIsToldThoughNobodyReads(String rung) {
        LadderSocketChannel client =
                connect(bootstrap(rung(rung)).option(ChannelOption.AUTO_READ, false), server(rung));
        Channel child = child();
        Patience.await("a write", child.writeAndFlush(bytes(1000)));
        settle(child, client);
        child.config().setOption(ChannelOption.SO_LINGER, 0);
        child.close();
        Patience.await("closing", client.closeFuture());
        Patience.until("it is told", () -> events.contains("inactive"));
    }

    private ServerSocket silence() throws IOException {
        return new ServerSocket(0, 10, InetAddress.getLoopbackAddress());
    }

    @Test
    void closingEndsTheClimb() throws Exception {
        try (ServerSocket silent = silence()) {
            better.connectTo(address -> (InetSocketAddress) silent.getLocalSocketAddress());
            ChannelFuture connecting = bootstrap(all()).connect((InetSocketAddress) silent.getLocalSocketAddress());
            silent.accept().close();
            Patience.until("it connects", () -> better.connects() == 1);
            Patience.await("closing", connecting.channel().close());
            assertThat(failure(connecting)).isInstanceOf(IOException.class);
            awaitEvents("registered", "unregistered");
        }
        Patience.until("all is closed", () -> ProviderStatistics.of(better).openConnections() == 0);
    }

    @Test
    void cancellingEndsTheClimb() throws Exception {
        try (ServerSocket silent = silence()) {
            better.connectTo(address -> (InetSocketAddress) silent.getLocalSocketAddress());
            ChannelFuture connecting = bootstrap(all()).connect((InetSocketAddress) silent.getLocalSocketAddress());
            Patience.until("it connects", () -> better.connects() == 1);
            assertThat(connecting.cancel(true)).isTrue();
            Patience.await("closing", connecting.channel().closeFuture());
            Patience.until("all is closed", () -> ProviderStatistics.of(better).openConnections() == 0);
        }
    }

    @Test
    void itsGroupEndsDuringTheClimb() throws Exception {
        try (ServerSocket silent = silence()) {
            better.connectTo(address -> (InetSocketAddress) silent.getLocalSocketAddress());
            ChannelFuture connecting = bootstrap(all()).connect((InetSocketAddress) silent.getLocalSocketAddress());
            Patience.until("it connects", () -> better.connects() == 1);
            group.close();
            assertThat(failure(connecting)).isInstanceOf(IOException.class);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {StagedProvider.NAME, "soft", Carrier.TCP})
    void itsGroupClosesItInGoodOrder(String rung) {
        LadderSocketChannel client = connect(bootstrap(rung(rung)), server(rung));
        Channel child = child();
        ChannelFuture write = client.writeAndFlush(bytes(1000));
        group.close();
        assertThat(write.isSuccess()).isTrue();
        assertThat(client.isOpen()).isFalse();
        Patience.await("the peer closing", child.closeFuture());
        assertThat(events).contains("inactive");
    }

    @Test
    void climbsAsItsLoopsSayUnlessItIsTold() {
        InetSocketAddress address = server(Carrier.TCP);
        try (RdmaEventLoopGroup loops = new RdmaEventLoopGroup(
                LadderOptions.DEFAULTS.withMinimumRung("soft"), 1, null, CompletionLoopOptions.DEFAULTS)) {
            assertThat(loops.socketChannelClass()).isEqualTo(LadderSocketChannel.class);
            Bootstrap bootstrap = new Bootstrap()
                    .group(loops)
                    .channelFactory(loops::newSocketChannel)
                    .option(ChannelOption.CONNECT_TIMEOUT_MILLIS, 1000) // a TCP server does not answer soft
                    .handler(new Witness());
            assertThat(failure(bootstrap.connect(address))).hasMessageContaining("none below soft is allowed");
            Bootstrap told = bootstrap
                    .clone()
                    .handler(new Witness())
                    .option(ChannelOption.CONNECT_TIMEOUT_MILLIS, (int) Patience.LIMIT.toMillis())
                    .option(RdmaChannelOption.LADDER, rung(Carrier.TCP));
            assertThat(LadderResult.of(connect(told, address)).rung()).isEqualTo(Carrier.TCP);
        }
        try (RdmaEventLoopGroup named = new RdmaEventLoopGroup("ladder", 1)) {
            assertThat(named.ladder()).isEqualTo(LadderOptions.DEFAULTS);
        }
        assertThat(servers.ladder()).isNull();
        assertThat(servers.newSocketChannel()).isInstanceOf(servers.socketChannelClass());
    }

    @Test
    void connectsOnce() {
        InetSocketAddress address = server("soft");
        LadderSocketChannel unregistered = new LadderSocketChannel();
        assertThat(unregistered.isActive()).isFalse();
        assertThat(unregistered.isShutdown()).isTrue();
        Channel fresh = bootstrap(rung("soft")).register().syncUninterruptibly().channel();
        assertThat(failure(fresh.writeAndFlush(bytes(1)))).isInstanceOf(NotYetConnectedException.class);
        assertThat(failure(((SocketChannel) fresh).shutdownOutput())).isInstanceOf(NotYetConnectedException.class);
        ChannelFuture first = fresh.connect(address);
        assertThat(failure(fresh.connect(address))).isInstanceOf(IllegalStateException.class);
        Patience.await("connecting", first);
        assertThat(failure(fresh.connect(address))).isInstanceOf(IllegalStateException.class);
        assertThat(failure(bootstrap(rung("soft"))
                        .disableResolver()
                        .connect(InetSocketAddress.createUnresolved("nowhere.invalid", 1))))
                .isInstanceOf(ConnectException.class);
        try (MultiThreadIoEventLoopGroup others = new MultiThreadIoEventLoopGroup(1, NioIoHandler.newFactory())) {
            assertThat(failure(new Bootstrap()
                            .group(others)
                            .channel(LadderSocketChannel.class)
                            .handler(new Witness())
                            .connect(address)))
                    .hasMessageContaining("incompatible event loop");
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"soft", Carrier.TCP})
    void itsOptionsAreItsRungs(String rung) {
        try (LoggedWarnings warnings = new LoggedWarnings("io.netty")) {
            LadderSocketChannel client = connect(
                    bootstrap(rung(rung))
                            .option(RdmaChannelOption.RECEIVE_DEPTH, 20)
                            .option(ChannelOption.TCP_NODELAY, false)
                            .option(ChannelOption.SO_LINGER, 7),
                    server(rung));
            assertThat(LadderResult.of(client).rung()).isEqualTo(rung);
            assertThat(client.config().getOption(RdmaChannelOption.LADDER)).isEqualTo(rung(rung));
            assertThat(client.config().getOptions()).containsKey(RdmaChannelOption.LADDER);
            assertThat(client.rung().config().isTcpNoDelay()).isFalse();
            assertThat(client.rung().config().getSoLinger()).isEqualTo(7);
            client.config().setTcpNoDelay(true).setSoLinger(-1).setAllowHalfClosure(true);
            assertThat(client.rung().config().isTcpNoDelay()).isTrue();
            assertThat(client.rung().config().getSoLinger()).isEqualTo(-1);
            assertThat(client.rung().config().isAllowHalfClosure()).isTrue();
            if (client.rung() instanceof RdmaSocketChannel rdma) {
                assertThat(rdma.config().getOption(RdmaChannelOption.RECEIVE_DEPTH))
                        .isEqualTo(20);
            }
            assertThatThrownBy(() -> client.config().setOption(RdmaChannelOption.LADDER, LadderOptions.DEFAULTS))
                    .isInstanceOf(IllegalStateException.class);
            assertThatThrownBy(() -> client.config().setOption(RdmaChannelOption.RECEIVE_DEPTH, 30))
                    .isInstanceOf(IllegalStateException.class);
            assertThat(warnings.texts()).isEmpty();
        }
    }
}
