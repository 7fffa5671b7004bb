package org.verbena.transport.soft;

import io.netty.channel.IoEventLoop;
import io.netty.channel.nio.NioIoOps;
import io.netty.util.concurrent.ScheduledFuture;
import java.io.IOException;
import java.net.ConnectException;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.net.NoRouteToHostException;
import java.net.SocketException;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import jdk.net.ExtendedSocketOptions;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.spi.ConnectionException;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointCapabilities;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.MemoryDomain;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.SharedReceiveQueue;
import org.verbena.transport.spi.WorkCompletionException;
import org.verbena.transport.spi.WorkRequest;
import org.verbena.transport.spi.WorkStatus;

/**
 * One iWARP connection.
 *
 * <p>All that happens, happens in turns: the socket can be read, can be written, or a task has its go. Within a turn the
 * handler is called as things are found, and what it posts meanwhile goes out together at the end of the turn. Outside of a
 * turn, in a method that the user called, nobody is called back: completions wait for the next turn, which a task provides.
 *
 * <pre>{@code
 * CONNECTING --TCP up, prepared--> SETUP --reply--> CONNECTED --disconnect, error, peer--> DRAINING --> CLOSED
 *      |                             |  accepting: reply sent, first FPDU of the peer        ^
 *      +-----------------------------+--------------------------------------------------------+
 * }</pre>
 */
final class SoftEndpoint implements Endpoint, SoftSocket.Owner {
    private static final Logger LOG = LoggerFactory.getLogger(SoftEndpoint.class);

    /** The most that an inline request carries: beyond it a copy costs more than holding the memory. */
    static final int MAX_INLINE_BYTES = 4096;

    /** Reads and atomics in one direction, at the most. */
    static final int MAX_READ_DEPTH = 128;

    /** Unanswered TCP keepalive probes that make a connection lost. */
    private static final int KEEPALIVE_PROBES = 3;

    /**
     * What one endpoint may read before others get their turn, and before what was read is answered. Peers that answer each other work at once only if
     * turns are short: as {@code bench/peers} and {@code bench/rpc} measured, turns of 1 MiB cost a tenth and more of the throughput of 64 messages of 64 KiB or 1 MiB.
     */
    private static final int TURN_BYTES = 256 * 1024;

    /** When the interface does not tell: Ethernet's. */
    private static final int DEFAULT_MTU = 1500;

    /** IPv4 and TCP headers with the time stamp option. */
    private static final int IP_TCP_HEADER_BYTES = 20 + 20 + 12;

    /** What IPv6 has more. */
    private static final int IPV6_EXTRA_BYTES = 20;

    /** The most that is one FPDU with its headers: so large a payload is read in place, and as few of them as can be make a long message. */
    private static final int RECEIVE_BUFFER_BYTES = 63 << 10;

    /** For thousands of connections, most of them idle: of these buffers each keeps several to itself. */
    private static final int SHARED_RECEIVE_BUFFER_BYTES = 16 << 10;

    /** Towards receives of {@link #RECEIVE_BUFFER_BYTES}. As {@code bench/peers} measured at 16 MiB on loopback, buffers that are used again soon are worth more than one piece. */
    private static final int RENDEZVOUS_BYTES = 64 << 20;

    /** Towards smaller ones, as {@code bench/eager} measured on loopback with receives of 16 KiB. */
    private static final int SMALL_RECEIVE_RENDEZVOUS_BYTES = 1 << 20;

    private static final int CONNECTING = 0;
    private static final int SETUP = 1;
    private static final int CONNECTED = 2;
    private static final int DRAINING = 3;
    private static final int CLOSED = 4;

    private final IoEventLoop loop;
    private final SoftDomain domain;
    private final ConnectionMemory connectionMemory;
    private final SoftOptions softOptions;
    private final EndpointOptions options;
    private final EndpointHandler handler;
    private final InetSocketAddress remoteAddress;
    private final boolean initiator;
    private final Runnable turnTask = this::turn;

    private int state = CONNECTING;
    private boolean prepared;
    private @Nullable SoftSocket socket;
    private @Nullable InetSocketAddress localAddress;
    private @Nullable SoftSharedReceiveQueue sharedQueue;
    private @Nullable EndpointCapabilities capabilities;
    private @Nullable ScheduledFuture<?> timeout;

    private final int maxInlineBytes;
    private final SendRing sendRing;
    private final WorkRing receiveRing;
    private @Nullable FpduSender sender;
    private @Nullable FpduReceiver receiver;
    private @Nullable MpaFrameReader replyReader;

    /** Accepting side: the request, until the connection is up. */
    private @Nullable MpaFrame request;

    /** Accepting side: whether the first FPDU of the peer is still to come. */
    private boolean awaitsFirstSegment;

    private int peerFeatures;
    private int readDepth;

    private boolean inTurn;
    private boolean turnScheduled;
    private boolean completionsReported;

    private @Nullable Throwable cause;
    private byte @Nullable [] terminate;
    private boolean reset;
    private long failedSequence = -1;
    private WorkStatus failedStatus = WorkStatus.FLUSHED;
    private boolean receiveFailed;

    private int receiveTick;
    private int sendTick;

    /**
     * Made by connect or accept.
     *
     * @param loop its thread
     * @param domain of the provider
     * @param softOptions of the provider
     * @param options asked for
     * @param handler hears of it
     * @param remoteAddress the peer
     * @param initiator whether this side connects
     */
    SoftEndpoint(
            IoEventLoop loop,
            SoftDomain domain,
            SoftOptions softOptions,
            EndpointOptions options,
            EndpointHandler handler,
            InetSocketAddress remoteAddress,
            boolean initiator) {
        this.loop = loop;
        this.domain = domain;
        connectionMemory = new ConnectionMemory(domain);
        this.softOptions = softOptions;
        this.options = options;
        this.handler = handler;
        this.remoteAddress = remoteAddress;
        this.initiator = initiator;
        maxInlineBytes = Math.min(options.maxInlineBytes(), MAX_INLINE_BYTES);
        sendRing = new SendRing(options.sendDepth(), options.maxSges(), maxInlineBytes);
        receiveRing = new WorkRing(options.receiveDepth(), options.maxSges());
    }

    // Setting up.

    /** Connects; on the loop. */
    void connect() {
        assert loop.inEventLoop();
        if (state != CONNECTING) {
            turn();
            return;
        }
        SocketChannel channel = null;
        try {
            channel = SocketChannel.open();
            configure(channel);
            InetSocketAddress local = options.localAddress();
            if (local != null) {
                channel.bind(local);
            }
            SoftSocket made = new SoftSocket(loop, channel, this);
            made.register();
            socket = made;
            startTimeout("connecting");
            if (channel.connect(remoteAddress)) {
                onTcpConnected();
            } else {
                made.await(NioIoOps.CONNECT);
            }
        } catch (IOException | RuntimeException e) {
            if (socket == null && channel != null) {
                try {
                    channel.close();
                } catch (IOException closing) {
                    e.addSuppressed(closing);
                }
            }
            inTurn = false;
            fail(connectFailure(e));
            turn();
        }
    }

    private void configure(SocketChannel channel) throws IOException {
        channel.configureBlocking(false);
        channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
        channel.setOption(StandardSocketOptions.SO_KEEPALIVE, true);
        int stallSeconds = softOptions.stallTimeoutMillis() / 1000;
        if (stallSeconds > 0 && channel.supportedOptions().contains(ExtendedSocketOptions.TCP_KEEPIDLE)) {
            // A peer that is gone without a word, and owes nothing, is noticed in about the stall timeout as well.
            channel.setOption(ExtendedSocketOptions.TCP_KEEPIDLE, Math.max(1, stallSeconds / 2));
            channel.setOption(ExtendedSocketOptions.TCP_KEEPINTERVAL, Math.max(1, stallSeconds / 2 / KEEPALIVE_PROBES));
            channel.setOption(ExtendedSocketOptions.TCP_KEEPCOUNT, KEEPALIVE_PROBES);
        }
        if (options.trafficClass() != 0) {
            channel.setOption(StandardSocketOptions.IP_TOS, options.trafficClass());
        }
    }

    private ConnectionException connectFailure(Exception e) {
        String what = "connecting to " + remoteAddress + ": " + e.getMessage();
        String text = String.valueOf(e.getMessage());
        if (e instanceof ConnectException && text.contains("refused")) {
            return new ConnectionException.Rejected(
                    what + "; nobody listens there (is the server up, and is it an iWARP or soft listener?)",
                    new byte[0]);
        }
        if (text.contains("timed out")) {
            return new ConnectionException.TimedOut(what);
        }
        if (e instanceof NoRouteToHostException || text.contains("unreachable")) {
            return new ConnectionException.Unreachable(what, e);
        }
        return new ConnectionException(what, e);
    }

    private void startTimeout(String step) {
        timeout = loop.schedule(
                () -> {
                    if (state < CONNECTED) {
                        fail(new ConnectionException.TimedOut(step + " with " + remoteAddress + ": not up after "
                                + options.connectTimeoutMillis() + " ms ("
                                + (state == CONNECTING
                                        ? "no TCP connection"
                                        : "TCP is connected, MPA setup is not done")
                                + ")"));
                        turn();
                    }
                },
                options.connectTimeoutMillis(),
                TimeUnit.MILLISECONDS);
    }

    private void onTcpConnected() throws IOException {
        SoftSocket now = requireSocket();
        inTurn = true;
        state = SETUP;
        prepare(now);
        if (state == SETUP) {
            boolean enhanced = softOptions.mpaRevision() == 2;
            boolean peerToPeer = enhanced && softOptions.peerToPeer();
            int depth = options.readDepth();
            EnhancedSetup setup =
                    enhanced ? new EnhancedSetup(depth, depth, peerToPeer, peerToPeer, peerToPeer, peerToPeer) : null;
            MpaFrame frame = new MpaFrame(
                    false, false, softOptions.crc(), false, softOptions.mpaRevision(), setup, options.privateData());
            writeFrame(now, frame);
            replyReader = new MpaFrameReader(true);
            now.await(NioIoOps.READ);
        }
        leaveTurn();
    }

    private void prepare(SoftSocket with) throws IOException {
        localAddress = (InetSocketAddress) with.channel().getLocalAddress();
        if (options.sharedReceiveQueue()) {
            sharedQueue = with.io().sharedReceiveQueue();
        }
        capabilities = capabilities(options.readDepth());
        prepared = true;
        try {
            handler.onPrepared(this);
        } catch (Throwable t) {
            fail(t);
        }
    }

    @Override
    public int rendezvousBytes(int peerReceiveBytes) {
        return peerReceiveBytes < RECEIVE_BUFFER_BYTES ? SMALL_RECEIVE_RENDEZVOUS_BYTES : RENDEZVOUS_BYTES;
    }

    private EndpointCapabilities capabilities(int readDepth) {
        return new EndpointCapabilities(
                options.sendDepth(),
                sharedQueue == null ? options.receiveDepth() : sharedQueue.depth(),
                options.maxSges(),
                options.maxSges(),
                maxInlineBytes,
                readDepth,
                Integer.MAX_VALUE,
                (peerFeatures & PeerFeatures.ATOMICS) != 0 && readDepth > 0,
                (peerFeatures & PeerFeatures.IMMEDIATE_DATA) != 0,
                true,
                false,
                sharedQueue == null ? RECEIVE_BUFFER_BYTES : SHARED_RECEIVE_BUFFER_BYTES,
                true);
    }

    /** A setup frame is tiny and the socket's buffer is empty: it goes out at once, or something is wrong. */
    private static void writeFrame(SoftSocket to, MpaFrame frame) throws IOException {
        ByteBuffer bytes = ByteBuffer.wrap(frame.encode());
        to.channel().write(bytes);
        if (bytes.hasRemaining()) {
            throw new IOException("the socket did not take a setup frame of " + bytes.limit() + " bytes at once");
        }
    }

    private void readReply(MpaFrameReader reader) throws IOException {
        MpaFrame reply;
        try {
            reply = reader.read(requireSocket().channel());
        } catch (MpaException e) {
            failSetup("the reply " + e.getMessage(), null);
            return;
        }
        if (reply == null) {
            if (reader.isEnded()) {
                failSetup(
                        "the peer closed the connection "
                                + (reader.hasBytes()
                                        ? "within its reply"
                                        : "without an MPA reply; is it an iWARP listener")
                                + (softOptions.mpaRevision() == 2 && !reader.hasBytes()
                                        ? ", and does it know revision 2 (else set org.verbena.transport.soft.mpaRevision=1)?"
                                        : ""),
                        null);
            }
            return;
        }
        replyReader = null;
        if (reply.rejected()) {
            fail(new ConnectionException.Rejected(
                    "connecting to " + remoteAddress + ": the peer rejected the connection"
                            + (reply.privateData().length == 0
                                    ? ""
                                    : " with " + reply.privateData().length + " bytes of private data"),
                    reply.privateData()));
            return;
        }
        if (reply.markers()) {
            failSetup("the peer wants MPA markers, which are not supported", null);
            return;
        }
        onAccepted(reply);
    }

    private void failSetup(String what, @Nullable TerminateReason reason) {
        if (reason != null) {
            terminate =
                    ByteBuffer.allocate(4).putShort((short) reason.control()).array();
        }
        fail(new ConnectionException("connecting to " + remoteAddress + ": " + what));
    }

    /** Connecting side: the reply says yes. */
    private void onAccepted(MpaFrame reply) {
        byte[] privateData = reply.privateData();
        EnhancedSetup setup = reply.setup();
        int outbound = options.readDepth();
        int inbound = options.readDepth();
        FpduSender.ReadyMessage ready = null;
        TerminateReason trouble = null;
        if (setup != null && softOptions.mpaRevision() == 2) {
            if (setup.inboundReads() != EnhancedSetup.NOT_NEGOTIATED) {
                outbound = Math.min(outbound, setup.inboundReads());
            }
            if (setup.outboundReads() != EnhancedSetup.NOT_NEGOTIATED) {
                inbound = Math.max(inbound, setup.outboundReads());
                trouble = inbound > MAX_READ_DEPTH ? TerminateReason.MPA_INSUFFICIENT_IRD : null;
            }
            if (setup.peerToPeer() && softOptions.peerToPeer()) {
                ready = setup.writeReady()
                        ? FpduSender.ReadyMessage.WRITE
                        : setup.readReady()
                                ? FpduSender.ReadyMessage.READ
                                : setup.sendReady() ? FpduSender.ReadyMessage.SEND : null;
                trouble = ready == null ? TerminateReason.MPA_NO_MATCHING_RTR : trouble;
            }
        }
        if (ready == FpduSender.ReadyMessage.WRITE) {
            peerFeatures = PeerFeatures.shared(privateData);
            if (peerFeatures != 0) {
                privateData = PeerFeatures.withoutToken(privateData);
            }
        }
        boolean crc = reply.crc() || softOptions.crc();
        FpduSender out = startStream(crc, outbound, Math.min(inbound, MAX_READ_DEPTH));
        out.open();
        if (trouble != null) {
            failSetup("setup failed: " + trouble.meaning, trouble);
            return;
        }
        if (ready != null) {
            out.sayReady(ready);
        }
        becomeConnected(privateData);
    }

    /**
     * Accepting side: takes the connection over; on the loop.
     *
     * @param channel connected, its request read; null if it is gone
     * @param inPlace the channel's socket if it is on this loop already
     * @param from the request
     */
    void accept(@Nullable SocketChannel channel, @Nullable SoftSocket inPlace, MpaFrame from) {
        assert loop.inEventLoop();
        if (channel == null || state != CONNECTING) {
            if (inPlace != null) {
                inPlace.closeNow();
            } else if (channel != null) {
                closeQuietly(channel);
            }
            fail(new ConnectionException(
                    "accepting from " + remoteAddress + ": the peer gave up before it was accepted"));
            turn();
            return;
        }
        try {
            configure(channel);
            SoftSocket made = inPlace == null ? new SoftSocket(loop, channel, this) : inPlace;
            if (inPlace == null) {
                made.register();
            } else {
                made.setOwner(this);
            }
            socket = made;
            startTimeout("accepting");
            inTurn = true;
            state = SETUP;
            prepare(made);
            if (state == SETUP) {
                reply(made, from);
            }
            leaveTurn();
        } catch (IOException | RuntimeException e) {
            if (socket == null) {
                closeQuietly(channel);
            }
            inTurn = false;
            fail(new ConnectionException("accepting from " + remoteAddress + ": " + e.getMessage(), e));
            turn();
        }
    }

    private static void closeQuietly(SocketChannel channel) {
        try {
            channel.close();
        } catch (IOException e) {
            LOG.debug("closing {}", channel, e);
        }
    }

    private void reply(SoftSocket to, MpaFrame from) throws IOException {
        EnhancedSetup asked = from.setup();
        int outbound = options.readDepth();
        int inbound = options.readDepth();
        EnhancedSetup answer = null;
        byte[] privateData = options.privateData();
        boolean peerToPeer = false;
        if (asked != null) {
            int ird = EnhancedSetup.NOT_NEGOTIATED;
            int ord = EnhancedSetup.NOT_NEGOTIATED;
            if (asked.outboundReads() != EnhancedSetup.NOT_NEGOTIATED) {
                inbound = Math.min(inbound, asked.outboundReads());
                ird = inbound;
            }
            if (asked.inboundReads() != EnhancedSetup.NOT_NEGOTIATED) {
                outbound = Math.min(outbound, asked.inboundReads());
                ord = outbound;
            }
            peerToPeer = asked.peerToPeer();
            boolean read = peerToPeer && !asked.writeReady() && asked.readReady();
            if (read) {
                // The ready-to-receive read needs a place too.
                inbound = Math.max(1, inbound);
                ird = ird == EnhancedSetup.NOT_NEGOTIATED ? ird : inbound;
            }
            answer = new EnhancedSetup(ird, ord, peerToPeer, false, peerToPeer && !read, read);
            if (asked.sendReady() && asked.writeReady() && asked.readReady()) {
                privateData = PeerFeatures.withToken(privateData);
            }
        }
        boolean crc = from.crc() || softOptions.crc();
        writeFrame(to, new MpaFrame(true, false, crc, false, from.revision(), answer, privateData));
        startStream(crc, outbound, inbound);
        awaitsFirstSegment = true;
        request = from;
        to.await(NioIoOps.READ);
        if (!peerToPeer) {
            // The peer says nothing until its user does: for the users the connection is up; what this side sends
            // waits.
            becomeConnected(from.privateData());
        }
    }

    private FpduSender startStream(boolean crc, int outbound, int inbound) {
        SoftSocket with = requireSocket();
        FpduSender out = new FpduSender(with, sendRing, crc, outbound, inbound);
        int sges =
                sharedQueue == null ? options.maxSges() : Math.max(options.maxSges(), SoftSharedReceiveQueue.MAX_SGES);
        sender = out;
        receiver = new FpduReceiver(this, with, out, sendRing, connectionMemory, sges, crc);
        readDepth = outbound;
        return out;
    }

    private int maxUlpduBytes() {
        int most = softOptions.maxFpduBytes();
        if (most == 0) {
            most = (peerFeatures & PeerFeatures.LARGE_SEGMENTS) != 0
                    ? Rdmap.MAX_ULPDU_BYTES + 2 + Rdmap.CRC_BYTES
                    : segmentBytes();
        }
        return Math.min(Rdmap.MAX_ULPDU_BYTES, (most & ~3) - 2 - Rdmap.CRC_BYTES);
    }

    /** What fits one TCP segment, as far as Java can tell. */
    private int segmentBytes() {
        InetSocketAddress local = localAddress;
        int mtu = DEFAULT_MTU;
        int headers = IP_TCP_HEADER_BYTES;
        if (local != null) {
            try {
                NetworkInterface device = NetworkInterface.getByInetAddress(local.getAddress());
                mtu = device == null || device.getMTU() < 576 ? DEFAULT_MTU : device.getMTU();
            } catch (SocketException e) {
                LOG.debug("asking for the MTU of {}", local, e);
            }
            headers += local.getAddress().getAddress().length > 4 ? IPV6_EXTRA_BYTES : 0;
        }
        return mtu - headers;
    }

    private void becomeConnected(byte[] privateData) {
        state = CONNECTED;
        ScheduledFuture<?> waiting = timeout;
        if (waiting != null) {
            timeout = null;
            waiting.cancel(false);
        }
        SoftSocket now = requireSocket();
        receiveTick = now.io().tick();
        sendTick = receiveTick;
        capabilities = capabilities(readDepth);
        FpduSender out = requireSender();
        out.setMaxUlpduBytes(maxUlpduBytes());
        if (peerFeatures == 0) {
            out.splitShortReads();
        }
        FpduReceiver in = requireReceiver();
        in.setFeatures(peerFeatures);
        request = null;
        try {
            handler.onConnected(this, privateData);
        } catch (Throwable t) {
            fail(t);
        }
    }

    /**
     * A segment with a good header has come.
     *
     * @param opcode what it is
     * @param key its STag, if tagged
     * @param offset its offset, if tagged
     * @param payloadBytes its payload
     * @return whether to go on with it
     */
    boolean onSegment(int opcode, int key, long offset, int payloadBytes) {
        if (!awaitsFirstSegment) {
            return true;
        }
        awaitsFirstSegment = false;
        requireSender().open();
        MpaFrame from = request;
        if (state == SETUP && from != null) {
            if (opcode == Rdmap.WRITE && payloadBytes == 0) {
                peerFeatures = PeerFeatures.shared(key, offset);
            }
            becomeConnected(from.privateData());
        }
        return isOpen();
    }

    // The user's side.

    @Override
    public EndpointCapabilities capabilities() {
        EndpointCapabilities now = capabilities;
        if (now == null) {
            throw new IllegalStateException("capabilities are known from onPrepared on");
        }
        return now;
    }

    @Override
    public MemoryDomain memoryDomain() {
        return domain;
    }

    @Override
    public MemoryDomain connectionMemory() {
        return connectionMemory;
    }

    @Override
    public InetSocketAddress localAddress() {
        InetSocketAddress now = localAddress;
        if (now == null) {
            throw new IllegalStateException("the local address is known from onPrepared on");
        }
        return now;
    }

    @Override
    public InetSocketAddress remoteAddress() {
        return remoteAddress;
    }

    @Override
    public @Nullable SharedReceiveQueue sharedReceiveQueue() {
        return sharedQueue;
    }

    @Override
    public boolean postReceive(long workId, ScatterGatherList buffers) {
        assert loop.inEventLoop();
        if (sharedQueue != null) {
            throw new UnsupportedOperationException("receives of this endpoint are posted to its shared receive queue");
        }
        checkReceive(domain, options.maxSges(), buffers);
        if (!prepared || state >= DRAINING || receiveRing.isFull()) {
            return false;
        }
        receiveRing.add(workId, buffers);
        return true;
    }

    /**
     * Checks a receive's pieces.
     *
     * @param domain where they must be registered
     * @param maxSges how many there may be
     * @param buffers the pieces
     */
    static void checkReceive(SoftDomain domain, int maxSges, ScatterGatherList buffers) {
        checkPieces(domain, maxSges, buffers, true);
        if (buffers.totalBytes() > Integer.MAX_VALUE) {
            throw new IllegalArgumentException(
                    "a receive of " + buffers.totalBytes() + " bytes is over the limit of " + Integer.MAX_VALUE);
        }
    }

    private static void checkPieces(SoftDomain domain, int maxSges, ScatterGatherList buffers, boolean written) {
        int count = buffers.count();
        if (count > maxSges) {
            throw new IllegalArgumentException(count + " pieces are over the limit of " + maxSges);
        }
        for (int i = 0; i < count; i++) {
            if (!(buffers.region(i) instanceof SoftMemory memory) || memory.domain() != domain) {
                throw new IllegalArgumentException(
                        "piece " + i + " is not registered with this endpoint's memory domain");
            }
            if (written && !memory.allows(MemoryDomain.Access.LOCAL_WRITE)) {
                throw new IllegalArgumentException(
                        "piece " + i + " lies in memory registered without LOCAL_WRITE, which receives and reads need");
            }
        }
    }

    @Override
    public boolean post(WorkRequest work) {
        assert loop.inEventLoop();
        check(work);
        if (state != CONNECTED || sendRing.isFull()) {
            return false;
        }
        sendRing.add(work);
        return true;
    }

    private void check(WorkRequest work) {
        ScatterGatherList buffers = work.buffers();
        WorkRequest.Opcode opcode = work.opcode();
        boolean answered = opcode.compareTo(WorkRequest.Opcode.READ) >= 0;
        checkPieces(domain, options.maxSges(), buffers, answered);
        if (buffers.totalBytes() > Integer.MAX_VALUE) {
            throw new IllegalArgumentException(
                    opcode + " of " + buffers.totalBytes() + " bytes is over the limit of " + Integer.MAX_VALUE);
        }
        if ((work.flags() & WorkRequest.INLINE) != 0) {
            if (answered) {
                throw new IllegalArgumentException(opcode + " cannot be inline: its data comes from the peer");
            }
            if (buffers.totalBytes() > maxInlineBytes) {
                throw new IllegalArgumentException("an inline " + opcode + " of " + buffers.totalBytes()
                        + " bytes is over the limit of " + maxInlineBytes);
            }
        }
        if (state != CONNECTED) {
            return;
        }
        switch (opcode) {
            case SEND_WITH_IMMEDIATE, WRITE_WITH_IMMEDIATE -> {
                if ((peerFeatures & PeerFeatures.IMMEDIATE_DATA) == 0) {
                    throw unsupported("immediate data");
                }
            }
            case COMPARE_AND_SWAP, FETCH_AND_ADD -> {
                if ((peerFeatures & PeerFeatures.ATOMICS) == 0) {
                    throw unsupported("atomics");
                }
                if (buffers.count() != 1 || buffers.length(0) != Long.BYTES) {
                    throw new IllegalArgumentException(opcode + " needs one piece of 8 bytes for the old value");
                }
                if ((work.remoteAddress() & 7) != 0) {
                    throw new IllegalArgumentException(
                            opcode + " at 0x" + Long.toHexString(work.remoteAddress()) + ": not a multiple of 8");
                }
            }
            default -> {}
        }
        if (answered && readDepth == 0) {
            throw new UnsupportedOperationException("the connection with " + remoteAddress
                    + " was set up for no reads and atomics; give both sides a readDepth of 1 or more");
        }
    }

    private UnsupportedOperationException unsupported(String what) {
        return new UnsupportedOperationException(
                "the peer " + remoteAddress + " is not known to take " + what + " (plain iWARP has none)");
    }

    @Override
    public int freeSendSlots() {
        return state == CONNECTED ? sendRing.depth() - sendRing.size() : 0;
    }

    @Override
    public void flush() {
        assert loop.inEventLoop();
        if (state != CONNECTED) {
            return;
        }
        if (inTurn) {
            // The end of the turn sends everything together.
            return;
        }
        FpduSender out = requireSender();
        if (!out.isBlocked()) {
            pump();
        }
        if (state == DRAINING || out.isHeadDone()) {
            scheduleTurn();
        }
    }

    @Override
    public void disconnect() {
        if (loop.inEventLoop()) {
            disconnect0();
        } else {
            try {
                loop.execute(this::disconnect0);
            } catch (RejectedExecutionException e) {
                // The loop has ended, and this connection with it.
                LOG.debug("disconnecting {} after its loop ended", this, e);
            }
        }
    }

    private void disconnect0() {
        assert loop.inEventLoop();
        if (state >= DRAINING) {
            return;
        }
        if (state < CONNECTED) {
            fail(new ConnectionException(
                    "connecting with " + remoteAddress + ": given up by this side before the connection was up"));
        } else {
            state = DRAINING;
        }
        if (!inTurn) {
            scheduleTurn();
        }
    }

    // Turns.

    private void scheduleTurn() {
        if (!turnScheduled) {
            turnScheduled = true;
            SoftSocket now = socket;
            if (inTurn && now != null) {
                // From turn to turn the sockets have a say in between; Netty runs tasks for up to a second without one.
                now.io().runAfterPoll(turnTask);
                return;
            }
            try {
                loop.execute(turnTask);
            } catch (RejectedExecutionException e) {
                // The loop is ending; onLoopEnding does the rest.
                turnScheduled = false;
                LOG.debug("no turn for {} any more", this, e);
            }
        }
    }

    private void turn() {
        turnScheduled = false;
        if (inTurn || state == CLOSED) {
            return;
        }
        inTurn = true;
        try {
            leaveTurn();
        } catch (RuntimeException e) {
            onFailure(e);
        }
    }

    /** Ends a turn: reports what is done, sends what was posted, and drains if the connection is over. */
    private void leaveTurn() {
        if (state == CONNECTED) {
            reportSends();
            endBatch();
        }
        if (state == CONNECTED) {
            FpduSender out = requireSender();
            if (!out.isBlocked() && out.hasWork()) {
                pump();
            }
        }
        if (state == DRAINING) {
            drain();
        }
        FpduSender out = sender;
        if (state == CONNECTED && out != null && out.isHeadDone()) {
            scheduleTurn();
        }
        inTurn = false;
    }

    private void endBatch() {
        if (completionsReported) {
            completionsReported = false;
            try {
                handler.onCompletionsHandled(this);
            } catch (Throwable t) {
                fail(t);
            }
        }
    }

    private void pump() {
        try {
            FpduSender out = requireSender();
            long before = out.writtenPosition();
            boolean more = out.pump();
            if (out.writtenPosition() != before) {
                sendTick = requireSocket().io().tick();
            }
            if (more) {
                scheduleTurn();
            }
        } catch (IOException e) {
            reset = true;
            fail(new ConnectionException.Lost("writing to " + remoteAddress + ": " + e.getMessage(), e));
        } catch (FpduSender.RegionGoneException e) {
            reset = true;
            fail(new ConnectionException("serving " + remoteAddress + ": " + e.getMessage()));
        } catch (FpduSender.ResponseRefusedException e) {
            terminate = ByteBuffer.allocate(4)
                    .putShort((short) TerminateReason.RDMAP_LOCAL_CATASTROPHIC.control())
                    .array();
            fail(new ConnectionException("serving " + remoteAddress + ": " + e.getMessage()));
        } catch (IllegalStateException e) {
            // The arena of registered memory was closed while work was out.
            reset = true;
            fail(e);
        }
    }

    private void reportSends() {
        FpduSender out = sender;
        while (out != null && state == CONNECTED && out.isHeadDone()) {
            completeHead(WorkStatus.SUCCESS);
        }
    }

    private void completeHead(WorkStatus status) {
        int slot = sendRing.slot(sendRing.head());
        long workId = sendRing.workId(slot);
        int bytes = status == WorkStatus.SUCCESS ? sendRing.totalBytes(slot) : 0;
        sendRing.removeHead();
        completed();
        try {
            handler.onSendCompletion(this, workId, status, bytes);
        } catch (Throwable t) {
            fail(t);
        }
    }

    private void completed() {
        completionsReported = true;
        SoftSocket counting = socket;
        if (counting != null) {
            counting.completed();
        }
    }

    private void reportReceive(long workId, WorkStatus status, int bytes, int flags, int word) {
        completed();
        try {
            handler.onReceiveCompletion(this, workId, status, bytes, flags, word);
        } catch (Throwable t) {
            fail(t);
        }
    }

    // What the socket says.

    @Override
    public void onReadable() {
        if (inTurn || state >= DRAINING) {
            return;
        }
        inTurn = true;
        try {
            MpaFrameReader reader = replyReader;
            if (reader != null) {
                readReply(reader);
            } else if (receiver != null) {
                receive(receiver);
            }
        } catch (IOException e) {
            reset = true;
            fail(
                    state < CONNECTED
                            ? new ConnectionException("setting up with " + remoteAddress + ": " + e.getMessage(), e)
                            : new ConnectionException.Lost("reading from " + remoteAddress + ": " + e.getMessage(), e));
        }
        leaveTurn();
    }

    /** Payload that came and was not read straight to its place. On the loop. */
    long copiedBytes() {
        return requireReceiver().copiedBytes();
    }

    private void receive(FpduReceiver in) throws IOException {
        reportSends();
        int turnBytes = 0;
        while (turnBytes < TURN_BYTES && isOpen()) {
            int bytes = in.readOnce();
            if (bytes < 0) {
                onPeerEnded(in);
                return;
            }
            if (bytes > 0) {
                receiveTick = requireSocket().io().tick();
            }
            turnBytes += bytes;
            if (!in.hasMore()) {
                return;
            }
        }
    }

    private void onPeerEnded(FpduReceiver in) {
        if (state == SETUP) {
            fail(new ConnectionException(
                    "accepting from " + remoteAddress + ": the peer closed the connection before it was up"));
        } else if (in.isInMessage()) {
            fail(new ConnectionException.Lost(
                    "the peer " + remoteAddress + " closed the connection in the middle of a message"));
        } else {
            state = DRAINING;
        }
    }

    @Override
    public void onWritable() {
        if (state == CONNECTING) {
            try {
                if (requireSocket().channel().finishConnect()) {
                    onTcpConnected();
                }
            } catch (IOException e) {
                inTurn = false;
                fail(connectFailure(e));
                turn();
            }
        } else if (state == CONNECTED && !inTurn) {
            inTurn = true;
            pump();
            leaveTurn();
        }
    }

    @Override
    public void onTick() {
        int now = requireSocket().io().tick();
        FpduSender out = sender;
        FpduReceiver in = receiver;
        if (state != CONNECTED || out == null || in == null) {
            return;
        }
        String waitsFor = null;
        if (now - receiveTick > SoftIoHandler.TICKS_PER_STALL && (in.isInMessage() || out.awaitsResponse())) {
            waitsFor = in.isInMessage() ? "the rest of a message" : "the response to a read or atomic";
        } else if (now - sendTick > SoftIoHandler.TICKS_PER_STALL && out.isBlocked()) {
            waitsFor = "room to send";
        }
        if (!in.isInMessage() && !out.awaitsResponse()) {
            receiveTick = now;
        }
        if (!out.isBlocked()) {
            sendTick = now;
        }
        if (waitsFor != null) {
            reset = true;
            fail(new ConnectionException.Lost("the peer " + remoteAddress + " was silent for "
                    + softOptions.stallTimeoutMillis() + " ms while this side waited for " + waitsFor
                    + " (org.verbena.transport.soft.stallTimeoutMillis)"));
            turn();
        }
    }

    @Override
    public void onFailure(Throwable thrown) {
        LOG.error("the connection with {} ends: an error of the provider", remoteAddress, thrown);
        reset = true;
        fail(thrown);
        inTurn = false;
        turn();
    }

    @Override
    public void onLoopEnding() {
        if (state < CONNECTED) {
            fail(new ConnectionException("setting up with " + remoteAddress + ": the event loop was shut down"));
        } else if (state == CONNECTED) {
            state = DRAINING;
        }
        turn();
    }

    // What the receiver finds.

    /** Whether the connection is in use: neither ending nor ended. */
    boolean isOpen() {
        return state < DRAINING;
    }

    /**
     * Takes the next receive for a message that begins.
     *
     * @param into filled with it
     * @return false if none is posted
     */
    boolean takeReceive(Placement into) {
        WorkRing ring = sharedQueue == null ? receiveRing : sharedQueue.ring();
        if (ring.isEmpty()) {
            return false;
        }
        ring.moveHeadTo(into);
        return true;
    }

    /**
     * A message is longer than its receive.
     *
     * @param receive in progress
     */
    void receiveTooSmall(Placement receive) {
        receiveFailed = true;
    }

    /**
     * A message is complete.
     *
     * @param receive what it filled
     * @param bytes how much
     * @param flags for the handler
     * @param word for the handler
     */
    void onReceived(Placement receive, int bytes, int flags, int word) {
        long workId = receive.workId();
        receive.endAndRelease();
        reportReceive(workId, WorkStatus.SUCCESS, bytes, flags, word);
    }

    /** A read or atomic of this side is answered. */
    void onAnswered() {
        reportSends();
    }

    /**
     * The peer sent something that cannot be accepted.
     *
     * @param reason for the Terminate message
     * @param what it was
     * @param denial what the peer is not told; null if it is told all
     * @param message the Terminate message's payload
     */
    void onRefused(TerminateReason reason, String what, @Nullable String denial, byte[] message) {
        if (state >= DRAINING) {
            return;
        }
        terminate = message;
        String text = "refused " + what + " from " + remoteAddress + ": " + (denial == null ? "" : denial + "; ")
                + "the peer was told with a TERMINATE message: " + TerminateReason.describe(reason.control());
        Throwable why = receiveFailed
                ? new WorkCompletionException(
                        "receive for a message from " + remoteAddress, WorkStatus.LOCAL_LENGTH_ERROR, 0)
                : new ConnectionException(text);
        LOG.info("{}", text);
        fail(why);
    }

    /**
     * The peer has ended the connection because of something this side did.
     *
     * @param message the Terminate message's payload
     */
    void onTerminate(byte[] message) {
        ByteBuffer in = ByteBuffer.wrap(message);
        int word = in.getInt();
        boolean siw = TerminateReason.isInOrderOfSiw(word);
        if (siw) {
            word = TerminateReason.inOrderOfRfc(word);
        }
        int control = word >>> 16;
        int flags = word & 0xffff;
        TerminateReason reason = TerminateReason.of(control);
        String operation = "an operation on the connection with " + remoteAddress;
        FpduSender out = requireSender();
        long sequence = -1;
        if ((flags & 0x4000) != 0 && in.remaining() >= 2 + 14) {
            in.getShort();
            int ddp = in.getShort() & 0xffff;
            int opcode = ddp & Rdmap.OPCODE_MASK;
            int key = in.getInt();
            operation = Rdmap.name(opcode) + " to " + remoteAddress;
            if ((ddp & Rdmap.TAGGED) != 0) {
                long offset = in.getLong();
                operation += String.format(" (address 0x%x, key 0x%08x)", offset, key);
                if (opcode == Rdmap.WRITE) {
                    sequence = out.sequenceOfWrite(key, offset);
                }
            } else if (in.remaining() >= 12) {
                int queue = in.getInt();
                if (siw && queue == Rdmap.QUEUE_READ_REQUEST) {
                    // Its message number is the read's length. It answers in order, so it is the oldest.
                    sequence = out.awaitsResponse() ? out.awaitedSequence() : -1;
                } else {
                    sequence = out.sequenceOf(queue, in.getInt());
                }
            }
        } else if (reason.status == WorkStatus.REMOTE_ACCESS_ERROR && out.awaitsResponse()) {
            // Not told which: of what can still be waiting, a read is the likeliest.
            sequence = out.awaitedSequence();
        }
        failedSequence = sequence;
        failedStatus = reason.status;
        LOG.info("{} ended the connection: {}", remoteAddress, TerminateReason.describe(control));
        fail(new WorkCompletionException(
                operation + ", terminated by the peer with " + TerminateReason.describe(control) + ",",
                reason.status,
                control));
    }

    // The end.

    /** Notes why the connection ends; the end of the turn does it. The first cause counts. */
    private void fail(Throwable why) {
        if (state < DRAINING) {
            state = DRAINING;
            cause = why;
            if (!inTurn) {
                scheduleTurn();
            }
        }
    }

    private void drain() {
        ScheduledFuture<?> waiting = timeout;
        if (waiting != null) {
            timeout = null;
            waiting.cancel(false);
        }
        leaveSocket();
        FpduSender out = sender;
        while (out != null && out.isHeadDone() && sendRing.head() != failedSequence) {
            completeHead(WorkStatus.SUCCESS);
        }
        while (!sendRing.isEmpty()) {
            completeHead(sendRing.head() == failedSequence ? failedStatus : WorkStatus.FLUSHED);
        }
        FpduReceiver in = receiver;
        if (in != null) {
            Placement receive = in.receiveInProgress();
            if (receive.isActive()) {
                long workId = receive.workId();
                receive.endAndRelease();
                reportReceive(workId, receiveFailed ? WorkStatus.LOCAL_LENGTH_ERROR : WorkStatus.FLUSHED, 0, 0, 0);
            }
            in.close();
        }
        while (!receiveRing.isEmpty()) {
            long workId = receiveRing.workId(receiveRing.slot(receiveRing.head()));
            receiveRing.removeHead();
            reportReceive(workId, WorkStatus.FLUSHED, 0, 0, 0);
        }
        if (out != null) {
            out.close();
        }
        endBatch();
        state = CLOSED;
        try {
            handler.onDisconnected(this, cause);
        } catch (Throwable t) {
            LOG.warn("the handler of {} threw at the end of its connection", this, t);
        }
    }

    /** Sends what is owed to the peer, as far as that goes, and lets the socket close itself. */
    private void leaveSocket() {
        SoftSocket now = socket;
        if (now == null) {
            return;
        }
        FpduSender out = sender;
        if (out == null) {
            now.closeNow();
            return;
        }
        ByteBuffer lastBytes = null;
        if (!reset) {
            out.stopSending();
            try {
                out.pump();
                lastBytes = out.lastBytes(terminate);
                reset = lastBytes == null;
            } catch (IOException | FpduSender.RegionGoneException | FpduSender.ResponseRefusedException e) {
                LOG.debug("the last bytes to {}", remoteAddress, e);
                reset = true;
            }
        }
        if (reset) {
            now.reset();
        } else {
            now.closeGracefully(lastBytes != null && lastBytes.hasRemaining() ? lastBytes : null);
        }
    }

    private SoftSocket requireSocket() {
        SoftSocket now = socket;
        if (now == null) {
            throw new IllegalStateException("no socket yet");
        }
        return now;
    }

    private FpduSender requireSender() {
        FpduSender now = sender;
        if (now == null) {
            throw new IllegalStateException("no stream yet");
        }
        return now;
    }

    private FpduReceiver requireReceiver() {
        FpduReceiver now = receiver;
        if (now == null) {
            throw new IllegalStateException("no stream yet");
        }
        return now;
    }

    @Override
    public String toString() {
        return "soft endpoint " + localAddress + (initiator ? " -> " : " <- ") + remoteAddress;
    }
}
