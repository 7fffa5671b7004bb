package org.verbena.jgroups;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.bootstrap.Bootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufOutputStream;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelOption;
import io.netty.channel.SimpleChannelInboundHandler;
import java.io.DataInput;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.function.Consumer;
import org.jgroups.Address;
import org.jgroups.Version;
import org.jgroups.blocks.cs.Connection;
import org.jgroups.blocks.cs.ConnectionListener;
import org.jgroups.blocks.cs.Receiver;
import org.jgroups.stack.IpAddress;
import org.jgroups.util.DefaultThreadFactory;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.RdmaChannel;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.provider.ProviderChoice;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RefusingThreads;

/** The connections of members, without the protocols above them. */
@Timeout(120)
abstract class PeerConnectionsSuite {
    private static final int QUEUED_BYTES = 16 << 10;
    private static final int SILENT = 700;

    /** What an end of a connection that is not one of many takes for receives. */
    private static final long USUAL_BYTES = 1 << 20;

    private final List<PeerServer> servers = new ArrayList<>();
    private int helloMillis = 300;

    abstract String provider();

    /** A server that keeps what it receives. */
    private static final class Inbox implements Receiver, ConnectionListener {
        final LinkedBlockingQueue<byte[]> messages = new LinkedBlockingQueue<>();
        final List<Connection> closed = new CopyOnWriteArrayList<>();
        volatile Consumer<byte[]> onMessage = messages::add;

        @Override
        public void receive(Address sender, byte[] buf, int offset, int length) {
            throw new AssertionError("nothing is received as an array");
        }

        @Override
        public void receive(Address sender, DataInput in, int length) throws Exception {
            byte[] message = new byte[length];
            in.readFully(message);
            onMessage.accept(message);
        }

        @Override
        public void connectionClosed(Connection connection) {
            closed.add(connection);
        }

        @Override
        public void connectionEstablished(Connection connection) {}

        String take() {
            return text(Patience.take("a message", messages));
        }
    }

    private static String text(byte[] message) {
        return new String(message, US_ASCII);
    }

    private static byte[] bytes(String text) {
        return text.getBytes(US_ASCII);
    }

    private PeerServer server(Inbox inbox, int port, int lastPort) throws Exception {
        return server(inbox, port, lastPort, 50);
    }

    private PeerServer server(Inbox inbox, int port, int lastPort, long maxBlockMillis) throws Exception {
        return server(inbox, port, lastPort, maxBlockMillis, new RdmaEventLoopGroup(provider(), 1));
    }

    private PeerServer server(Inbox inbox, int port, int lastPort, long maxBlockMillis, RdmaEventLoopGroup loops)
            throws Exception {
        Map<ChannelOption<?>, Object> options = new HashMap<>();
        options.put(ChannelOption.CONNECT_TIMEOUT_MILLIS, 30_000);
        PeerServer server = new PeerServer(
                new PeerServer.Settings(
                        provider(),
                        1,
                        new PeerServer.Ports(InetAddress.getLoopbackAddress(), port, lastPort),
                        new PeerServer.Outside(null, 0),
                        null,
                        options,
                        QUEUED_BYTES,
                        maxBlockMillis,
                        helloMillis),
                new DefaultThreadFactory("test", true),
                loops);
        server.receiver(inbox).addConnectionListener(inbox);
        servers.add(server);
        return server;
    }

    private PeerServer started(Inbox inbox) throws Exception {
        PeerServer server = server(inbox, 0, 0);
        server.start();
        return server;
    }

    private static void send(PeerServer from, PeerServer to, String message) throws Exception {
        byte[] bytes = bytes(message);
        from.send(to.localAddress(), bytes, 0, bytes.length);
    }

    @AfterEach
    void stop() {
        servers.forEach(PeerServer::stop);
    }

    @Test
    void oneConnectionCarriesBothDirections() throws Exception {
        Inbox atOne = new Inbox();
        Inbox atOther = new Inbox();
        PeerServer one = started(atOne);
        PeerServer other = started(atOther);
        for (int i = 0; i < 40; i++) {
            send(one, other, "there " + i);
        }
        for (int i = 0; i < 40; i++) {
            assertThat(atOther.take()).isEqualTo("there " + i);
        }
        send(other, one, "back");
        assertThat(atOne.take()).isEqualTo("back");
        assertThat(one.getNumOpenConnections()).isEqualTo(1);
        assertThat(other.getNumOpenConnections()).isEqualTo(1);
        assertThat(other.getConnection(one.localAddress()).peerAddress()).isEqualTo(one.localAddress());
    }

    @Test
    void everythingArrivesThoughBothConnectAtOnce() throws Exception {
        Inbox atOne = new Inbox();
        Inbox atOther = new Inbox();
        PeerServer one = started(atOne);
        PeerServer other = started(atOther);
        CyclicBarrier together = new CyclicBarrier(2);
        for (int round = 0; round < 30; round++) {
            String said = "round " + round;
            Thread thread = Thread.ofPlatform().start(() -> {
                try {
                    together.await();
                    send(other, one, said);
                } catch (Exception failure) {
                    throw new AssertionError(failure);
                }
            });
            together.await();
            send(one, other, said);
            thread.join();
            assertThat(atOne.take()).isEqualTo(said);
            assertThat(atOther.take()).isEqualTo(said);
            // Also once each end has made its choice.
            send(one, other, said + " again");
            send(other, one, said + " again");
            assertThat(atOne.take()).isEqualTo(said + " again");
            assertThat(atOther.take()).isEqualTo(said + " again");
            one.clearConnections(true);
            other.clearConnections(true);
        }
        assertThat(atOne.messages).isEmpty();
        assertThat(atOther.messages).isEmpty();
        assertThat(one.droppedMessages() + other.droppedMessages()).isZero();
    }

    @Test
    void whatIsSentBeforeThereIsAConnectionWaitsUpToTheBound() throws Exception {
        Inbox atOther = new Inbox();
        PeerServer one = started(new Inbox());
        PeerServer other = server(atOther, 0, 0); // accepts nothing yet
        String kilobyte = "x".repeat(1024 - 3);
        for (int i = 100; i < 200; i++) {
            send(one, other, i + kilobyte);
        }
        long dropped = one.droppedMessages();
        assertThat(dropped).isBetween(80L, 90L);
        assertThat(one.getConnection(other.localAddress()).isConnectionPending())
                .isTrue();
        other.start();
        for (int i = 100; i < 200 - dropped; i++) {
            assertThat(atOther.take()).isEqualTo(i + kilobyte);
        }
        send(one, other, "after");
        assertThat(atOther.take()).isEqualTo("after");
    }

    @Test
    void aPeerThatTakesNothingHoldsUpNoOther() throws Exception {
        Inbox atHung = new Inbox();
        CountDownLatch goOn = new CountDownLatch(1);
        Inbox atOther = new Inbox();
        PeerServer one = started(new Inbox());
        PeerServer hung = started(atHung);
        PeerServer other = started(atOther);
        send(one, hung, "hello");
        assertThat(atHung.take()).isEqualTo("hello");
        atHung.onMessage = message -> {
            Patience.until("the test lets it go on", () -> goOn.getCount() == 0);
            atHung.messages.add(message);
        };
        String message = "y".repeat(60_000);
        int sent = 0;
        while (one.droppedMessages() == 0) {
            send(one, hung, message);
            sent++;
        }
        for (int i = 0; i < 200; i++) {
            send(one, hung, message);
            sent++;
            send(one, other, "message " + i);
            assertThat(atOther.take()).isEqualTo("message " + i);
        }
        long arriving = sent - one.droppedMessages();
        assertThat(arriving).isLessThan(sent - 50);
        goOn.countDown();
        for (int i = 0; i < arriving; i++) {
            assertThat(atHung.take()).hasSize(message.length());
        }
        send(one, hung, "taken again");
        assertThat(atHung.take()).isEqualTo("taken again");
    }

    @Test
    void aPeerThatTakesMessagesSlowsItsSenderDownAndLosesNothing() throws Exception {
        Inbox atSlow = new Inbox();
        PeerServer one = server(new Inbox(), 0, 0, 60_000);
        one.start();
        PeerServer slow = started(atSlow);
        send(one, slow, "hello");
        assertThat(atSlow.take()).isEqualTo("hello");
        String message = "z".repeat(60_000);
        for (int i = 0; i < 300; i++) {
            send(one, slow, message); // far more than may wait
        }
        for (int i = 0; i < 300; i++) {
            assertThat(atSlow.take()).hasSize(message.length());
        }
        assertThat(one.droppedMessages()).isZero();
    }

    @Test
    void longMessagesArrive() throws Exception {
        Inbox atOther = new Inbox();
        PeerServer one = started(new Inbox());
        PeerServer other = started(atOther);
        byte[] message = new byte[20 << 20];
        new Random(7).nextBytes(message);
        send(one, other, "first"); // so that the long one goes into registered memory
        assertThat(atOther.take()).isEqualTo("first");
        one.send(other.localAddress(), message, 0, message.length);
        assertThat(Patience.take("the message", atOther.messages)).isEqualTo(message);
    }

    @Test
    void aCloseIsToldAndALossIsNot() throws Exception {
        Inbox atOne = new Inbox();
        Inbox atOther = new Inbox();
        PeerServer one = started(atOne);
        PeerServer other = started(atOther);
        send(one, other, "hello");
        assertThat(atOther.take()).isEqualTo("hello");
        one.clearConnections(true);
        Patience.until("the other has seen the close", () -> atOther.closed.size() == 1);
        assertThat(atOther.closed.getFirst().isClosedGracefully()).isTrue();
        Patience.until("it has left", () -> other.getNumConnections() == 0);

        send(one, other, "hello");
        assertThat(atOther.take()).isEqualTo("hello");
        one.clearConnections(false);
        Patience.until("the other has seen the loss", () -> atOther.closed.size() == 2);
        assertThat(atOther.closed.getLast().isClosedGracefully()).isFalse();
        assertThat(atOther.closed.getLast().peerAddress()).isEqualTo(one.localAddress());
    }

    @Test
    void whatWasSentBeforeACloseArrives() throws Exception {
        Inbox atOther = new Inbox();
        PeerServer one = started(new Inbox());
        PeerServer other = started(atOther);
        for (int i = 0; i < 10; i++) {
            send(one, other, "message " + i);
        }
        one.clearConnections(true); // while it connects
        for (int i = 0; i < 10; i++) {
            assertThat(atOther.take()).isEqualTo("message " + i);
        }
    }

    @Test
    void anIdleConnectionIsReapedAndMadeAgain() throws Exception {
        Inbox atOther = new Inbox();
        PeerServer one = server(new Inbox(), 0, 0);
        one.connExpireTimeout(50).reaperInterval(20);
        one.start();
        PeerServer other = started(atOther);
        send(one, other, "first");
        assertThat(atOther.take()).isEqualTo("first");
        Patience.until("both ends have left it", () -> one.getNumConnections() + other.getNumConnections() == 0);
        assertThat(atOther.closed).allMatch(Connection::isClosedGracefully);
        send(one, other, "second");
        assertThat(atOther.take()).isEqualTo("second");
    }

    @Test
    void aConnectionThatCannotBeMadeIsTriedAgainByTheNextMessage() throws Exception {
        Inbox atOther = new Inbox();
        PeerServer one = started(new Inbox());
        PeerServer gone = started(new Inbox());
        int port = ((IpAddress) gone.localAddress()).getPort();
        gone.stop(); // its port is free now
        send(one, gone, "lost");
        Patience.until("the attempt has failed", () -> one.getNumConnections() == 0);
        PeerServer other = server(atOther, port, port);
        other.start();
        send(one, other, "found");
        assertThat(atOther.take()).isEqualTo("found");
    }

    @Test
    void takesTheNextPortThatIsFree() throws Exception {
        PeerServer one = started(new Inbox());
        int port = ((IpAddress) one.localAddress()).getPort();
        PeerServer next = server(new Inbox(), port, port + 20);
        assertThat(((IpAddress) next.localAddress()).getPort()).isBetween(port + 1, port + 20);
    }

    /** What keeps a port from being bound is the cause, which a log of JGroups' exception shows. */
    @Test
    void aPortThatIsTakenIsToldWithTheReason() throws Exception {
        PeerServer one = started(new Inbox());
        int port = ((IpAddress) one.localAddress()).getPort();
        assertThatThrownBy(() -> server(new Inbox(), port, port))
                .isInstanceOf(IOException.class)
                .hasCauseInstanceOf(ConnectionException.class);
    }

    /** Connects as a member of that port, of which it says no more. */
    private static Channel member(RdmaEventLoopGroup loops, PeerServer to, int port, Inbox inbox) throws Exception {
        Channel channel = stranger(loops, to, inbox).connect().sync().channel();
        channel.writeAndFlush(hello(port));
        return channel;
    }

    private static Connection awaitOther(PeerServer at, IpAddress peer, @Nullable Connection than) {
        return Patience.untilThere("the peer has connected", () -> {
            Connection present = at.openTo(peer);
            return present == than ? null : present;
        });
    }

    private static void sendBy(Connection connection, String message) throws Exception {
        byte[] bytes = bytes(message);
        connection.send(bytes, 0, bytes.length);
    }

    /** JGroups looks a connection up and then sends by it, and meanwhile another one may have taken its place. */
    @Test
    void whatIsSentByAConnectionThatWasReplacedGoesByTheOneInItsPlace() throws Exception {
        PeerServer one = started(new Inbox());
        IpAddress peer = new IpAddress(InetAddress.getLoopbackAddress(), 1);
        List<Inbox> inboxes = List.of(new Inbox(), new Inbox(), new Inbox());
        List<Connection> connections = new ArrayList<>();
        Connection last = null;
        try (RdmaEventLoopGroup loops = new RdmaEventLoopGroup(provider(), 1)) {
            for (Inbox inbox : inboxes) {
                member(loops, one, 1, inbox);
                last = awaitOther(one, peer, last);
                connections.add(last);
            }
            for (int i = 0; i < 10; i++) {
                for (Connection each : connections) {
                    sendBy(each, "message " + i);
                }
                for (Connection each : connections) {
                    assertThat(inboxes.getLast().take()).as("%s", each).isEqualTo("message " + i);
                }
            }
        }
        assertThat(one.droppedMessages()).isZero();
    }

    /** What is sent while the loop has no turn waits in the connection. */
    @Test
    void whatWaitsInAConnectionThatIsReplacedGoesByTheOneInItsPlaceInOrder() throws Exception {
        PeerServer one = started(new Inbox());
        IpAddress peer = new IpAddress(InetAddress.getLoopbackAddress(), 1);
        Inbox atOld = new Inbox();
        Inbox atNew = new Inbox();
        CountDownLatch goOn = new CountDownLatch(1);
        try (RdmaEventLoopGroup loops = new RdmaEventLoopGroup(provider(), 1)) {
            member(loops, one, 1, atOld);
            Connection held = awaitOther(one, peer, null);
            member(loops, one, 2, atNew);
            Connection next = awaitOther(one, new IpAddress(InetAddress.getLoopbackAddress(), 2), null);
            one.loops.next().execute(() -> Patience.until("the test lets it go on", () -> goOn.getCount() == 0));
            for (int i = 0; i < 3; i++) {
                sendBy(held, "message " + i);
            }
            one.replaceConnection(peer, next);
            sendBy(held, "message 3");
            goOn.countDown();
            for (int i = 0; i < 4; i++) {
                assertThat(atNew.take()).isEqualTo("message " + i);
            }
            assertThat(atOld.messages).isEmpty();
        }
        assertThat(one.droppedMessages()).isZero();
    }

    /** The peer connects as well, while this end's attempt has no answer. */
    @Test
    void whatWaitsForAConnectionGoesByThatOfThePeer() throws Exception {
        PeerServer some = server(new Inbox(), 0, 0);
        PeerServer more = server(new Inbox(), 0, 0); // none accepts anything yet
        boolean inOrder = some.localAddress().compareTo(more.localAddress()) < 0;
        PeerServer one = inOrder ? some : more; // of both that connect the one of the higher address stays
        IpAddress other = (IpAddress) (inOrder ? more : some).localAddress();
        one.start();
        for (int i = 0; i < 10; i++) {
            byte[] message = bytes("message " + i);
            one.send(other, message, 0, message.length);
        }
        Connection pending = awaitOther(one, other, null);
        assertThat(pending.isConnectionPending()).isTrue();
        Inbox atPeer = new Inbox();
        try (RdmaEventLoopGroup loops = new RdmaEventLoopGroup(provider(), 1)) {
            member(loops, one, other.getPort(), atPeer);
            awaitOther(one, other, pending);
            sendBy(pending, "message 10");
            for (int i = 0; i <= 10; i++) {
                assertThat(atPeer.take()).isEqualTo("message " + i);
            }
        }
        assertThat(one.droppedMessages()).isZero();
    }

    private static Bootstrap stranger(RdmaEventLoopGroup loops, PeerServer to) {
        return stranger(loops, to, new Inbox());
    }

    private static Bootstrap stranger(RdmaEventLoopGroup loops, PeerServer to, Inbox inbox) {
        return new Bootstrap()
                .group(loops)
                .channel(RdmaChannel.class)
                .handler(new SimpleChannelInboundHandler<ByteBuf>() {
                    @Override
                    protected void channelRead0(ChannelHandlerContext context, ByteBuf message) {
                        if (message.isReadable()) { // else its sender closes
                            inbox.messages.add(ByteBufUtil.getBytes(message));
                        }
                    }
                })
                .remoteAddress(new InetSocketAddress(
                        InetAddress.getLoopbackAddress(), ((IpAddress) to.localAddress()).getPort()));
    }

    @Test
    void strangersAreCutOff() throws Exception {
        PeerServer one = started(new Inbox());
        try (RdmaEventLoopGroup loops = new RdmaEventLoopGroup(provider(), 1)) {
            Channel silent = stranger(loops, one).connect().sync().channel();
            Channel invalid = stranger(loops, one).connect().sync().channel();
            invalid.writeAndFlush(Unpooled.copiedBuffer(bytes("no hello, and long enough to have an address in it")));
            Patience.await("the one without a hello is cut off", invalid.closeFuture());
            Patience.await("the silent one is cut off", silent.closeFuture());
        }
        assertThat(one.getNumConnections()).isZero();
    }

    /** Members may be idle, so their connections stay: where they are many, with less memory. */
    @Test
    void silentMembersLeaveRoomForOthers() throws Exception {
        helloMillis = (int) Patience.LIMIT.toMillis();
        Inbox atOne = new Inbox();
        PeerServer one = started(atOne);
        PeerServer honest = started(new Inbox());
        PeerServer late = started(new Inbox());
        try (RdmaEventLoopGroup loops = new RdmaEventLoopGroup(provider(), 1)) {
            send(honest, one, "before");
            assertThat(atOne.take()).isEqualTo("before");
            long before = receiveBytes(loops);
            for (int i = 1; i <= SILENT; i++) {
                Channel silent = stranger(loops, one).connect().sync().channel();
                silent.writeAndFlush(hello(i));
            }
            Patience.until("all are members", () -> one.getNumConnections() == SILENT + 1);
            for (PeerServer each : List.of(honest, late)) {
                send(each, one, "beside them");
                assertThat(atOne.take()).isEqualTo("beside them");
            }
            assertThat(receiveBytes(loops) - before).isLessThan(3 * SILENT * USUAL_BYTES / 2);
        }
        Patience.until("all have left", () -> one.getNumConnections() == 2);
    }

    /** Of both ends of all connections. */
    private static long receiveBytes(RdmaEventLoopGroup loops) {
        return loops.providerStatistics().receiveBuffers().usedBytes();
    }

    /** What a member says first, at a port of this host. */
    static ByteBuf hello(int port) throws IOException {
        try (ByteBufOutputStream out = new ByteBufOutputStream(Unpooled.buffer())) {
            out.writeBytes("bela");
            out.writeShort(Version.version);
            new IpAddress(InetAddress.getLoopbackAddress(), port).writeTo(out);
            return out.buffer();
        }
    }

    @Test
    void anErrorOfTheReceiverCostsOneConnection() throws Exception {
        Inbox atOther = new Inbox();
        PeerServer one = started(new Inbox());
        PeerServer other = started(atOther);
        send(one, other, "before");
        assertThat(atOther.take()).isEqualTo("before");
        atOther.onMessage = message -> {
            atOther.onMessage = atOther.messages::add;
            throw new StackOverflowError("on purpose");
        };
        send(one, other, "fails");
        Patience.until("the connection is gone", () -> one.getNumConnections() == 0);
        send(one, other, "after");
        assertThat(atOther.take()).isEqualTo("after");
    }

    /** The thread of a loop cannot be started twice: for the channel, and for whatever waits for it. */
    @Test
    void aConnectionWithoutAThreadFailsAndTheNextOneIsMade() throws Exception {
        Inbox atOther = new Inbox();
        RefusingThreads threads = new RefusingThreads(1, 2); // the first loop listens
        PeerServer one = server(
                new Inbox(),
                0,
                0,
                50,
                new RdmaEventLoopGroup(
                        ProviderChoice.choose(provider(), null), 2, threads, CompletionLoopOptions.DEFAULTS));
        one.start();
        PeerServer other = started(atOther);
        while (!threads.isOver()) { // for one message, or two
            send(one, other, "lost");
        }
        Patience.until("no connection waits for a thread", () -> one.getNumConnections() == 0);
        send(one, other, "found");
        assertThat(atOther.take()).isEqualTo("found");
    }
}
