package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.bootstrap.Bootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelOption;
import io.netty.channel.socket.DatagramPacket;
import java.lang.foreign.Arena;
import java.net.BindException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.channels.ClosedChannelException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.verbena.api.RdmaChannelOption;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.datagram.RdmaDatagramAddress;
import org.verbena.api.datagram.RdmaDatagramChannel;
import org.verbena.api.datagram.RdmaDatagramPacket;
import org.verbena.cm.CmId;
import org.verbena.cm.DatagramParameters;
import org.verbena.cm.EventChannel;
import org.verbena.cm.PortSpace;
import org.verbena.cm.sync.CmEndpoint;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.DatagramPeer;
import org.verbena.transport.MessageTooLargeException;
import org.verbena.transport.spi.Patience;
import org.verbena.verbs.AddressHandle;
import org.verbena.verbs.AddressVector;
import org.verbena.verbs.MemoryRegion;
import org.verbena.verbs.address.GidEntry;
import org.verbena.verbs.address.GidType;
import org.verbena.verbs.address.GlobalRoute;
import org.verbena.verbs.work.SendFlags;

/** Datagram channels, with each other and with C's udaddy and mckey. */
@Tag("lab")
@Timeout(120)
class DatagramsOnRxeTest {
    private static final String LOCAL = LabDevice.RXE.address();

    /** udaddy has no option for its port. */
    private static final int UDADDY_PORT = 7174;

    /** What udaddy and mckey send unless told otherwise. */
    private static final int MESSAGES = 10;

    private static final int MESSAGE_BYTES = 100;
    private static RdmaEventLoopGroup group;
    private final List<RdmaDatagramChannel> open = new ArrayList<>();

    @BeforeAll
    static void start() {
        group = new RdmaEventLoopGroup("verbs", 1);
    }

    @AfterAll
    static void stop() {
        group.close();
    }

    @AfterEach
    void closeAll() {
        open.forEach(channel -> channel.close().syncUninterruptibly());
    }

    /** Keeps what is read for the test, which releases it. */
    private static final class Inbox extends ChannelInboundHandlerAdapter {
        private final BlockingQueue<RdmaDatagramPacket> packets = new LinkedBlockingQueue<>();
        private final BlockingQueue<Throwable> failures = new LinkedBlockingQueue<>();

        @Override
        public void channelRead(ChannelHandlerContext context, Object message) {
            packets.add((RdmaDatagramPacket) message);
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
            failures.add(cause);
        }

        RdmaDatagramPacket next() throws InterruptedException {
            RdmaDatagramPacket packet = packets.poll(Patience.LIMIT.toMillis(), TimeUnit.MILLISECONDS);
            assertThat(packet).as("a datagram in time; failures: %s", failures).isNotNull();
            return packet;
        }

        String nextText() throws InterruptedException {
            RdmaDatagramPacket packet = next();
            String text = packet.content().toString(StandardCharsets.UTF_8);
            packet.release();
            return text;
        }
    }

    /** Sends each datagram back to the queue pair that sent it. */
    private static final class Echo extends ChannelInboundHandlerAdapter {
        @Override
        public void channelRead(ChannelHandlerContext context, Object message) {
            DatagramPacket packet = (DatagramPacket) message;
            context.writeAndFlush(new DatagramPacket(packet.content(), packet.sender()));
        }
    }

    private static Bootstrap bootstrap(ChannelHandler handler) {
        return new Bootstrap().group(group).channel(RdmaDatagramChannel.class).handler(handler);
    }

    private RdmaDatagramChannel bind(ChannelHandler handler, String host, int port) {
        return keep(bootstrap(handler).bind(host, port).syncUninterruptibly().channel());
    }

    private RdmaDatagramChannel keep(Channel channel) {
        open.add((RdmaDatagramChannel) channel);
        return (RdmaDatagramChannel) channel;
    }

    private static ByteBuf text(String text) {
        return Unpooled.copiedBuffer(text, StandardCharsets.UTF_8);
    }

    private static void await(ChannelFuture future) {
        assertThat(future.awaitUninterruptibly(Patience.LIMIT.toMillis()))
                .as("done in time")
                .isTrue();
    }

    private static Throwable failureOf(ChannelFuture future) {
        await(future);
        assertThat(future.isSuccess()).isFalse();
        return future.cause();
    }

    // ---- Java to Java

    @Test
    void looksAPeerUpAndIsAnswered() throws Exception {
        Inbox inbox = new Inbox();
        RdmaDatagramChannel server = bind(new Echo(), LOCAL, 7960);
        RdmaDatagramChannel client = bind(inbox, LOCAL, 0);
        assertThat(server.localAddress().getPort()).isEqualTo(7960);
        assertThat(client.localAddress().getPort()).isPositive();
        for (int i = 0; i < 50; i++) {
            client.writeAndFlush(new DatagramPacket(text("number " + i), server.localAddress()))
                    .syncUninterruptibly();
            RdmaDatagramPacket echo = inbox.next();
            assertThat(echo.content().toString(StandardCharsets.UTF_8)).isEqualTo("number " + i);
            assertThat(echo.sender()).as("the port that was looked up").isEqualTo(server.localAddress());
            assertThat(((RdmaDatagramAddress) echo.sender()).peer())
                    .isEqualTo(server.queuePairAddress().peer());
            assertThat(echo.hasImmediateData()).isTrue();
            assertThat(echo.immediateData()).isEqualTo(server.queuePairAddress().queuePairNumber());
            echo.release();
        }
        assertThat(client.statistics().sent()).isEqualTo(50);
        assertThat(client.statistics().received()).isEqualTo(50);
        assertThat(server.statistics().receivedBytes())
                .isEqualTo(client.statistics().sentBytes());
    }

    @Test
    void speaksIpv6() throws Exception {
        Inbox inbox = new Inbox();
        RdmaDatagramChannel server = bind(new Echo(), LabDevice.RXE.ipv6Address(), 7961);
        RdmaDatagramChannel client = bind(inbox, LabDevice.RXE.ipv6Address(), 0);
        client.writeAndFlush(new DatagramPacket(text("six"), server.localAddress()))
                .syncUninterruptibly();
        assertThat(inbox.nextText()).isEqualTo("six");
    }

    @Test
    void sendsToAQueuePairWithoutALookUpAndWithItsOwnImmediateData() throws Exception {
        Inbox inbox = new Inbox();
        RdmaDatagramChannel server = bind(inbox, LOCAL, 0);
        RdmaDatagramChannel client = bind(new Inbox(), LOCAL, 0);
        RdmaDatagramAddress known = RdmaDatagramAddress.of(
                InetAddress.getByName(LOCAL), server.queuePairAddress().queuePairNumber());
        client.write(new RdmaDatagramPacket(text("with"), known, 0xcafe_f00d));
        client.writeAndFlush(new RdmaDatagramPacket(text("without"), known)).syncUninterruptibly();
        RdmaDatagramPacket with = inbox.next();
        assertThat(with.hasImmediateData()).isTrue();
        assertThat(with.immediateData()).isEqualTo(0xcafe_f00d);
        assertThat(with.sender().getPort()).as("an RDMA sender has none").isZero();
        with.release();
        RdmaDatagramPacket without = inbox.next();
        assertThat(without.hasImmediateData()).isFalse();
        without.release();
    }

    @Test
    void aConnectedChannelSendsBuffersAndHearsItsPeerAlone() throws Exception {
        Inbox inbox = new Inbox();
        RdmaDatagramChannel server = bind(new Echo(), LOCAL, 7962);
        RdmaDatagramChannel client =
                keep(bootstrap(inbox).connect(LOCAL, 7962).syncUninterruptibly().channel());
        RdmaDatagramChannel stranger = bind(new Inbox(), LOCAL, 0);
        assertThat(client.isConnected()).isTrue();
        assertThat(client.remoteAddress()).isEqualTo(new InetSocketAddress(LOCAL, 7962));
        assertThat(client.localAddress().getAddress().getHostAddress()).isEqualTo(LOCAL);
        stranger.writeAndFlush(new DatagramPacket(text("not for you"), client.localAddress()))
                .syncUninterruptibly();
        client.writeAndFlush(client.alloc().buffer().writeBytes("yes".getBytes(StandardCharsets.UTF_8)))
                .syncUninterruptibly();
        assertThat(inbox.nextText()).isEqualTo("yes");
        Patience.until("the stranger's is dropped", () -> client.statistics().filtered() == 1);

        client.disconnect().syncUninterruptibly();
        assertThat(client.isConnected()).isFalse();
        stranger.writeAndFlush(new DatagramPacket(text("now"), client.localAddress()))
                .syncUninterruptibly();
        assertThat(inbox.nextText()).isEqualTo("now");
        assertThat(server.isActive()).isTrue();
    }

    @Test
    void aWildcardStandsForTheOnlyDevice() throws Exception {
        Inbox inbox = new Inbox();
        RdmaDatagramChannel any = bind(inbox, "0.0.0.0", 0);
        assertThat(any.localAddress().getAddress().getHostAddress()).isEqualTo(LOCAL);
        RdmaDatagramChannel client = bind(new Inbox(), LOCAL, 0);
        client.writeAndFlush(new DatagramPacket(text("there"), any.localAddress()))
                .syncUninterruptibly();
        assertThat(inbox.nextText()).isEqualTo("there");
    }

    @Test
    void aBurstOfMoreThanTheQueueHoldsLeaves() throws Exception {
        Inbox inbox = new Inbox();
        RdmaDatagramChannel server = bind(inbox, LOCAL, 7963);
        RdmaDatagramChannel client = keep(bootstrap(new Inbox())
                .option(RdmaChannelOption.SEND_DEPTH, 4)
                .bind(LOCAL, 0)
                .syncUninterruptibly()
                .channel());
        ChannelFuture last = null;
        for (int i = 0; i < 100; i++) {
            last = client.writeAndFlush(new DatagramPacket(text(Integer.toString(i)), server.localAddress()));
        }
        await(Objects.requireNonNull(last));
        assertThat(last.cause()).isNull();
        for (int i = 0; i < 100; i++) {
            assertThat(inbox.nextText()).isEqualTo(Integer.toString(i));
        }
    }

    @Test
    void whatComesWhileTheProgramHoldsAllBuffersIsLostAndThenItGoesOn() throws Exception {
        Inbox inbox = new Inbox();
        RdmaDatagramChannel server = keep(bootstrap(inbox)
                .option(RdmaChannelOption.RECEIVE_DEPTH, 4)
                .bind(LOCAL, 7964)
                .syncUninterruptibly()
                .channel());
        RdmaDatagramChannel client = bind(new Inbox(), LOCAL, 0);
        for (int i = 0; i < 40; i++) {
            client.writeAndFlush(new DatagramPacket(text("burst"), server.localAddress()))
                    .syncUninterruptibly();
        }
        Patience.until("all buffers are held", () -> inbox.packets.size() == 8);
        Patience.turns(client.eventLoop(), server.eventLoop()); // in which no more come
        assertThat(inbox.packets).as("two for each receive").hasSize(8);
        RdmaDatagramPacket held;
        while ((held = inbox.packets.poll()) != null) {
            held.release();
        }
        Patience.turns(group.next());
        client.writeAndFlush(new DatagramPacket(text("again"), server.localAddress()))
                .syncUninterruptibly();
        assertThat(inbox.nextText()).isEqualTo("again");
    }

    @Test
    void withoutAutoReadDatagramsWait() throws Exception {
        Inbox inbox = new Inbox();
        RdmaDatagramChannel server = keep(bootstrap(inbox)
                .option(ChannelOption.AUTO_READ, false)
                .bind(LOCAL, 7965)
                .syncUninterruptibly()
                .channel());
        RdmaDatagramChannel client = bind(new Inbox(), LOCAL, 0);
        client.writeAndFlush(new DatagramPacket(text("later"), server.localAddress()))
                .syncUninterruptibly();
        Patience.until("it came", () -> server.statistics().received() == 1);
        assertThat(inbox.packets).isEmpty();
        server.read();
        assertThat(inbox.nextText()).isEqualTo("later");
    }

    // ---- what fails

    @Test
    void aPortWhereNobodyListensFailsTheWrite() {
        RdmaDatagramChannel client = bind(new Inbox(), LOCAL, 0);
        InetSocketAddress nobody = new InetSocketAddress(LOCAL, 7698);
        ChannelFuture first = client.write(new DatagramPacket(text("a"), nobody));
        ChannelFuture second = client.writeAndFlush(new DatagramPacket(text("b"), nobody));
        assertThat(failureOf(first))
                .isInstanceOf(ConnectionException.class)
                .hasMessageContaining("10.77.0.1:7698")
                .hasMessageContaining("nobody listens");
        assertThat(failureOf(second)).isSameAs(first.cause());
        assertThat(client.isActive()).isTrue();
        assertThat(client.statistics().sent()).isZero();
    }

    @Test
    void aHostThatIsNotThereFailsTheWriteInTimeAndHoldsUpNobodyElse() throws Exception {
        Inbox inbox = new Inbox();
        RdmaDatagramChannel server = bind(inbox, LOCAL, 7966);
        RdmaDatagramChannel client = keep(bootstrap(new Inbox())
                .option(ChannelOption.CONNECT_TIMEOUT_MILLIS, 5_000)
                .bind(LOCAL, 0)
                .syncUninterruptibly()
                .channel());
        InetSocketAddress silent = new InetSocketAddress(LabDevice.RXE.silentAddress(), 7966);
        ChannelFuture lost = client.writeAndFlush(new DatagramPacket(text("lost"), silent));
        client.writeAndFlush(new DatagramPacket(text("found"), server.localAddress()))
                .syncUninterruptibly();
        assertThat(inbox.nextText()).isEqualTo("found");
        assertThat(lost.isDone()).isFalse();
        assertThat(failureOf(lost)).isInstanceOf(ConnectionException.class).hasMessageContaining("10.77.0.250");
    }

    @Test
    void tooLongADatagramFailsItsWriteAlone() throws Exception {
        Inbox inbox = new Inbox();
        RdmaDatagramChannel server = bind(inbox, LOCAL, 7967);
        RdmaDatagramChannel client = bind(new Inbox(), LOCAL, 0);
        int max = client.maxDatagramBytes();
        assertThat(max).isBetween(256, 4096);
        assertThat(failureOf(client.writeAndFlush(
                        new DatagramPacket(Unpooled.wrappedBuffer(new byte[max + 1]), server.localAddress()))))
                .isInstanceOf(MessageTooLargeException.class)
                .hasMessageContaining(Integer.toString(max));
        for (int bytes : new int[] {0, 1, max}) {
            client.writeAndFlush(new DatagramPacket(Unpooled.wrappedBuffer(new byte[bytes]), server.localAddress()))
                    .syncUninterruptibly();
            RdmaDatagramPacket packet = inbox.next();
            assertThat(packet.content().readableBytes()).isEqualTo(bytes);
            packet.release();
        }
    }

    @Test
    void aPortThatIsTakenIsRefused() {
        bind(new Inbox(), LOCAL, 7968);
        ChannelFuture second = bootstrap(new Inbox()).bind(LOCAL, 7968);
        assertThat(failureOf(second)).isInstanceOf(BindException.class).hasMessageContaining("7968");
    }

    @Test
    void whatWasFlushedLeavesBeforeTheCloseAndThePortIsFree() throws Exception {
        Inbox inbox = new Inbox();
        RdmaDatagramChannel server = bind(inbox, LOCAL, 7969);
        for (int round = 0; round < 3; round++) {
            RdmaDatagramChannel client = bind(new Inbox(), LOCAL, 7970);
            client.writeAndFlush(new DatagramPacket(text("first"), server.localAddress()))
                    .syncUninterruptibly();
            List<ChannelFuture> writes = new ArrayList<>();
            client.eventLoop()
                    .submit(() -> {
                        for (int i = 0; i < 20; i++) {
                            writes.add(client.writeAndFlush(new DatagramPacket(text("last"), server.localAddress())));
                        }
                        return client.close();
                    })
                    .get()
                    .syncUninterruptibly();
            assertThat(writes).hasSize(20).allMatch(ChannelFuture::isSuccess);
            assertThat(inbox.nextText()).isEqualTo("first");
            for (int i = 0; i < 20; i++) {
                assertThat(inbox.nextText()).isEqualTo("last");
            }
        }
    }

    @Test
    void aCloseFailsWhatWaitsForALookUp() {
        RdmaDatagramChannel client = bind(new Inbox(), LOCAL, 0);
        ChannelFuture waiting = client.writeAndFlush(
                new DatagramPacket(text("never"), new InetSocketAddress(LabDevice.RXE.silentAddress(), 7971)));
        client.close().syncUninterruptibly();
        assertThat(failureOf(waiting)).isInstanceOf(ClosedChannelException.class);
        assertThat(failureOf(client.writeAndFlush(text("late")))).isInstanceOf(ClosedChannelException.class);
    }

    @Test
    void aPeerThatWasStartedAnewIsFoundOnceItIsForgotten() throws Exception {
        Inbox before = new Inbox();
        RdmaDatagramChannel first = bind(before, LOCAL, 7972);
        RdmaDatagramChannel client = bind(new Inbox(), LOCAL, 0);
        InetSocketAddress address = new InetSocketAddress(LOCAL, 7972);
        client.writeAndFlush(new DatagramPacket(text("old"), address)).syncUninterruptibly();
        assertThat(before.nextText()).isEqualTo("old");
        first.close().syncUninterruptibly();
        Inbox after = new Inbox();
        bind(after, LOCAL, 7972);
        client.forget(address);
        client.writeAndFlush(new DatagramPacket(text("new"), address)).syncUninterruptibly();
        assertThat(after.nextText()).isEqualTo("new");
    }

    /** A queue pair that sends what it likes: with another key, which is dropped by the device, and of any length. */
    @Test
    void aHostileSenderDoesNoHarm() throws Exception {
        Inbox inbox = new Inbox();
        RdmaDatagramChannel server = bind(inbox, LOCAL, 0);
        int target = server.queuePairAddress().queuePairNumber();
        try (EventChannel events = EventChannel.open();
                CmId id = CmId.create(events, PortSpace.UDP);
                Arena arena = Arena.ofShared()) {
            id.bind(new InetSocketAddress(LOCAL, 0));
            try (CmEndpoint hostile = CmEndpoint.create(id, 8, 1);
                    MemoryRegion bytes = hostile.registerMessages(arena.allocate(4096))) {
                GidEntry own = Objects.requireNonNull(id.device()).queryGids().stream()
                        .filter(entry -> entry.type() == GidType.ROCE_V2
                                && entry.gid().toInetAddress().getHostAddress().equals(LOCAL))
                        .findFirst()
                        .orElseThrow();
                AddressVector there = AddressVector.global(1, GlobalRoute.to(own.gid(), own.index()));
                try (AddressHandle handle = hostile.domain().createAddressHandle(there)) {
                    DatagramParameters wrongKey = new DatagramParameters(new byte[0], there, target, 0x7777);
                    DatagramParameters rightKey =
                            new DatagramParameters(new byte[0], there, target, DatagramParameters.UDP_QUEUE_KEY);
                    hostile.postDatagram(1, bytes, 0, 64, SendFlags.SIGNALED, handle, wrongKey);
                    hostile.postDatagram(2, bytes, 0, 0, SendFlags.SIGNALED, handle, rightKey);
                    hostile.postDatagram(3, bytes, 0, server.maxDatagramBytes(), SendFlags.SIGNALED, handle, rightKey);
                    for (int i = 0; i < 3; i++) {
                        assertThat(hostile.awaitSend(10_000)).isNotNull();
                    }
                    RdmaDatagramPacket empty = inbox.next();
                    assertThat(empty.content().readableBytes()).isZero();
                    assertThat(empty.hasImmediateData()).isFalse();
                    assertThat(((RdmaDatagramAddress) empty.sender()).queuePairNumber())
                            .isEqualTo(hostile.queuePair().number());
                    empty.release();
                    RdmaDatagramPacket whole = inbox.next();
                    assertThat(whole.content().readableBytes()).isEqualTo(server.maxDatagramBytes());
                    whole.release();
                }
            }
        }
        RdmaDatagramChannel client = bind(new Inbox(), LOCAL, 0);
        client.writeAndFlush(new DatagramPacket(text("still here"), server.localAddress()))
                .syncUninterruptibly();
        assertThat(inbox.nextText()).isEqualTo("still here");
    }

    /** The network does not answer for the address of a queue pair that is made up. */
    @Test
    void aQueuePairOfAHostThatIsNotThereFailsTheWrite() throws Exception {
        RdmaDatagramChannel client = bind(new Inbox(), LOCAL, 0);
        RdmaDatagramAddress nobody =
                RdmaDatagramAddress.of(InetAddress.getByName(LabDevice.RXE.silentAddress()), 0x123456);
        ChannelFuture lost = client.writeAndFlush(new DatagramPacket(text("lost"), nobody));
        await(lost);
        // Kernels differ: one asks the network for the host first, another sends into the void.
        if (!lost.isSuccess()) {
            assertThat(lost.cause()).isInstanceOf(ConnectionException.class).hasMessageContaining("10.77.0.250");
        }
        assertThat(client.isActive()).isTrue();
    }

    // ---- multicast

    @Test
    void membersOfAGroupReceiveUntilTheyLeave() throws Exception {
        InetAddress multicast = InetAddress.getByName("239.77.1.1");
        Inbox one = new Inbox();
        Inbox two = new Inbox();
        RdmaDatagramChannel first = bind(one, LOCAL, 0);
        RdmaDatagramChannel second = bind(two, LOCAL, 0);
        RdmaDatagramChannel sender = bind(new Inbox(), LOCAL, 0);
        first.joinGroup(multicast).syncUninterruptibly();
        second.joinGroup(new InetSocketAddress(multicast, 0), null).syncUninterruptibly();
        InetSocketAddress toAll = new InetSocketAddress(multicast, 0);
        sender.writeAndFlush(new DatagramPacket(text("all"), toAll)).syncUninterruptibly();
        RdmaDatagramPacket packet = one.next();
        assertThat(packet.content().toString(StandardCharsets.UTF_8)).isEqualTo("all");
        assertThat(((RdmaDatagramAddress) packet.sender()).peer())
                .isEqualTo(sender.queuePairAddress().peer());
        packet.release();
        assertThat(two.nextText()).isEqualTo("all");

        first.leaveGroup(multicast).syncUninterruptibly();
        assertThatThrownBy(() -> first.leaveGroup(multicast).syncUninterruptibly())
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("not joined");
        // Leaving is done by the connection loop, some time after the future.
        long deadline = System.nanoTime() + Patience.LIMIT.toNanos();
        boolean hasLeft = false;
        while (!hasLeft) {
            assertThat(System.nanoTime()).as("it leaves").isLessThan(deadline);
            sender.writeAndFlush(new DatagramPacket(text("one"), toAll)).syncUninterruptibly();
            assertThat(two.nextText()).isEqualTo("one");
            Patience.turns(group.next());
            RdmaDatagramPacket last = one.packets.poll();
            hasLeft = last == null;
            if (last != null) {
                last.release();
            }
        }

        second.block(multicast, InetAddress.getByName(LOCAL)).syncUninterruptibly();
        sender.writeAndFlush(new DatagramPacket(text("none"), toAll)).syncUninterruptibly();
        Patience.until("it is dropped", () -> second.statistics().filtered() == 1);
        assertThat(two.packets).isEmpty();
    }

    // ---- with C

    @Test
    void serviceForUdaddy() throws Exception {
        RdmaDatagramChannel server = bind(new Echo(), LOCAL, UDADDY_PORT);
        try (PeerProgram client = PeerProgram.start("udaddy", "-b", LOCAL, "-s", LOCAL)) {
            assertThat(client.awaitExit(Patience.LIMIT)).as(client.output()).isZero();
            assertThat(client.output()).contains("data transfers complete").contains("return status 0");
        }
        assertThat(server.statistics().received()).isEqualTo(MESSAGES);
        assertThat(server.statistics().receivedBytes()).isEqualTo(MESSAGES * MESSAGE_BYTES);
    }

    @Test
    void udaddysService() throws Exception {
        Inbox inbox = new Inbox();
        try (PeerProgram server = PeerProgram.start("udaddy", "-b", LOCAL)) {
            server.awaitLine("starting server", Patience.LIMIT);
            RdmaDatagramChannel client = connectTo(inbox, UDADDY_PORT);
            for (int i = 0; i < MESSAGES; i++) {
                client.write(Unpooled.wrappedBuffer(new byte[MESSAGE_BYTES]));
            }
            client.flush();
            for (int i = 0; i < MESSAGES; i++) {
                RdmaDatagramPacket reply = inbox.next();
                assertThat(reply.content().readableBytes()).isEqualTo(MESSAGE_BYTES);
                assertThat(reply.hasImmediateData()).isTrue();
                assertThat(reply.immediateData())
                        .as("udaddy's queue pair")
                        .isEqualTo(((RdmaDatagramAddress) reply.sender()).queuePairNumber());
                assertThat(reply.sender()).isEqualTo(new InetSocketAddress(LOCAL, UDADDY_PORT));
                reply.release();
            }
            assertThat(server.awaitExit(Patience.LIMIT)).as(server.output()).isZero();
            assertThat(server.output()).contains("data transfers complete");
        }
    }

    /** The program prints its first line before it listens. */
    private RdmaDatagramChannel connectTo(Inbox inbox, int port) {
        return keep(Patience.untilThere("the program listens", () -> {
                    ChannelFuture attempt = bootstrap(inbox).connect(LOCAL, port);
                    await(attempt);
                    return attempt.isSuccess() ? attempt : null;
                })
                .channel());
    }

    @Test
    void mckeysGroup(@TempDir Path folder) throws Exception {
        Inbox inbox = new Inbox();
        RdmaDatagramChannel member = bind(inbox, LOCAL, 0);
        member.joinGroup(InetAddress.getByName("239.77.1.2")).syncUninterruptibly();
        try (PeerProgram sender = MulticastSender.start(folder, "-m", "239.77.1.2", "-b", LOCAL)) {
            for (int i = 0; i < MESSAGES; i++) {
                RdmaDatagramPacket packet = inbox.next();
                assertThat(packet.content().readableBytes()).isEqualTo(MESSAGE_BYTES);
                assertThat(packet.immediateData()).isEqualTo(((RdmaDatagramAddress) packet.sender()).queuePairNumber());
                packet.release();
            }
            sender.terminate();
            assertThat(sender.awaitExit(Patience.LIMIT)).as(sender.output()).isZero();
        }
    }

    @Test
    void aGroupWithMckeyInIt() throws Exception {
        try (PeerProgram receiver = PeerProgram.start("mckey", "-m", "239.77.1.3", "-b", LOCAL)) {
            receiver.awaitLine("receiving data transfers", Patience.LIMIT);
            RdmaDatagramChannel sender = bind(new Inbox(), LOCAL, 0);
            for (int i = 0; i < MESSAGES; i++) {
                sender.writeAndFlush(new DatagramPacket(
                                Unpooled.wrappedBuffer(new byte[MESSAGE_BYTES]),
                                new InetSocketAddress("239.77.1.3", 0)))
                        .syncUninterruptibly();
            }
            assertThat(receiver.awaitExit(Patience.LIMIT)).as(receiver.output()).isZero();
            assertThat(receiver.output()).contains("data transfers complete");
        }
    }

    // ---- refused

    @Test
    void siwHasNone() {
        ChannelFuture refused = bootstrap(new Inbox()).bind(LabDevice.SIW.address(), 0);
        assertThat(failureOf(refused))
                .isInstanceOf(BindException.class)
                .hasMessageContaining("siw0 is iWARP")
                .hasMessageContaining("unreliable-datagram");
    }

    @Test
    void softHasNone() {
        try (RdmaEventLoopGroup soft = new RdmaEventLoopGroup("soft", 1)) {
            assertThat(soft.provider().hasDatagrams()).isFalse();
            ChannelFuture refused = new Bootstrap()
                    .group(soft)
                    .channel(RdmaDatagramChannel.class)
                    .handler(new Inbox())
                    .bind("127.0.0.1", 0);
            assertThat(failureOf(refused))
                    .isInstanceOf(UnsupportedOperationException.class)
                    .hasMessageContaining("soft has no datagrams");
        }
        assertThat(group.provider().hasDatagrams()).isTrue();
        assertThat(DatagramPeer.MULTICAST).isEqualTo(0xffffff);
    }
}
