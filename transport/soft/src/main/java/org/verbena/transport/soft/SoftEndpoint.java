package org.verbena.transport.soft;

import io.netty.buffer.ByteBuf;
import io.netty.channel.IoEventLoop;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.WorkCompletionException;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.software.InboundReads;
import org.verbena.transport.software.LoopSocket;
import org.verbena.transport.software.Placement;
import org.verbena.transport.software.SoftwareEndpoint;
import org.verbena.transport.software.SoftwareIoHandler;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.EndpointOptions;

/**
 * One iWARP connection.
 *
 * <pre>{@code
 * COMING_UP:  TCP --connected--> prepared
 *                 --reply (connecting), or reply sent and the peer's first FPDU (accepting)--> CONNECTED
 * }</pre>
 */
final class SoftEndpoint extends SoftwareEndpoint implements SoftSocket.Owner, SegmentSink {
    private static final Logger LOG = LoggerFactory.getLogger(SoftEndpoint.class);

    /**
     * What one endpoint may read before others get their turn, and before what was read is answered. Peers that answer
     * each other overlap their work only if turns are short: as {@code bench/peers} and {@code bench/rpc} measured,
     * turns of 1 MiB cost a tenth and more of the throughput of 64 messages of 64 KiB or 1 MiB.
     */
    private static final int TURN_BYTES = 256 * 1024;

    /** Less than a turn may take: TCP may have no more of a peer's than its window. */
    private static final int MUCH_BYTES = TURN_BYTES / 4;

    /** The same for short messages. Of 16, 32 and 1,000 this was the fastest: each time costs a system call. */
    private static final int BATCH_MESSAGES = 32;

    /**
     * The most that fits one FPDU with its headers: so large a payload is read in place, and a long message needs as
     * few FPDUs as possible.
     */
    private static final int RECEIVE_BUFFER_BYTES = 63 << 10;

    /**
     * Towards receives of {@link #RECEIVE_BUFFER_BYTES}. As {@code bench/peers} measured at 16 MiB on loopback, buffers
     * that are used again soon are worth more than one piece.
     */
    private static final int RENDEZVOUS_BYTES = 64 << 20;

    /** Towards smaller ones, as {@code bench/eager} measured on loopback with receives of 16 KiB. */
    private static final int SMALL_RECEIVE_RENDEZVOUS_BYTES = 1 << 20;

    private final SoftContext context;
    private final SoftOptions softOptions;
    private final Runnable readTurn = this::readInTurn;
    private @Nullable SoftSocket socket;

    /** The last turn has read much: the peer sends long messages, and takes turns with others. */
    private boolean readsMuch;

    private boolean isReadScheduled;
    private @Nullable FpduStream stream;

    /** Until the connection is up and the peer's first segment has come. */
    private @Nullable SoftSetup setup;

    private int peerFeatures;
    private final ConnectionEnd end = new ConnectionEnd();

    /**
     * Made by connect or accept.
     *
     * @param loop its thread
     * @param context of the provider
     * @param options asked for
     * @param handler called with its events
     * @param remoteAddress the peer
     * @param initiator whether this side connects
     */
    SoftEndpoint(
            IoEventLoop loop,
            SoftContext context,
            EndpointOptions options,
            EndpointHandler handler,
            InetSocketAddress remoteAddress,
            boolean initiator) {
        super(loop, context.domain(), options, handler, remoteAddress, initiator);
        this.context = context;
        softOptions = context.options();
        setup = new SoftSetup(this, loop, softOptions, options, remoteAddress);
    }

    // Setting up.

    /**
     * Starts to connect.
     *
     * @param loop its thread
     * @param context of the provider
     * @param options asked for
     * @param handler gets the events
     * @param remoteAddress the peer
     * @param bound the channel to connect with, or null for a new one
     * @return not connected yet
     */
    static SoftEndpoint connecting(
            IoEventLoop loop,
            SoftContext context,
            EndpointOptions options,
            EndpointHandler handler,
            InetSocketAddress remoteAddress,
            @Nullable SocketChannel bound) {
        MpaNegotiation.checkPrivateData(options, false);
        MpaNegotiation.checkTransport(options);
        SoftEndpoint made = new SoftEndpoint(loop, context, options, handler, remoteAddress, true);
        loop.execute(made.guarded(() -> made.connect(bound)));
        return made;
    }

    /** Connects; on the loop. */
    private void connect(@Nullable SocketChannel bound) {
        assert loop.inEventLoop();
        if (!isComingUp()) {
            if (bound != null) {
                LoopSocket.closeQuietly(bound);
            }
            turn();
            return;
        }
        requireSetup().connect(bound);
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
        if (channel == null || !isComingUp()) {
            if (inPlace != null) {
                inPlace.closeNow();
            } else if (channel != null) {
                LoopSocket.closeQuietly(channel);
            }
            fail(new ConnectionException(
                    "accepting from " + remoteAddress + ": the peer disconnected before it was accepted"));
            turn();
            return;
        }
        requireSetup().accept(channel, inPlace, from);
    }

    // What the setup finds.

    boolean isTcpConnected() {
        return isPrepared();
    }

    void setSocket(SoftSocket made) {
        socket = made;
    }

    void setPeerFeatures(int features) {
        peerFeatures = features;
    }

    /** TCP is up: what is posted may be prepared. Returns whether to continue. */
    boolean prepare(SoftSocket with) throws IOException {
        return prepare(
                (InetSocketAddress) with.channel().getLocalAddress(),
                options.sharedReceiveQueue() ? with.io().sharedReceiveQueue() : null);
    }

    @Override
    public boolean trySend(long first, long second, ByteBuf rest, int index, int restBytes) {
        assert loop.inEventLoop();
        boolean taken = isConnected() && requireStream().out.trySend(first, second, rest, index, restBytes);
        if (taken) {
            countCompletion(); // the message stands for a work request
        }
        return taken;
    }

    @Override
    public boolean hasSentCopies() {
        FpduSender out = sender();
        return out == null || out.hasSentCopies();
    }

    @Override
    public int rendezvousBytes(int peerReceiveBytes) {
        return peerReceiveBytes < RECEIVE_BUFFER_BYTES ? SMALL_RECEIVE_RENDEZVOUS_BYTES : RENDEZVOUS_BYTES;
    }

    @Override
    protected int receiveBufferBytes() {
        return RECEIVE_BUFFER_BYTES;
    }

    @Override
    protected int mostBatchMessages() {
        return BATCH_MESSAGES;
    }

    @Override
    protected boolean takesImmediateData() {
        return (peerFeatures & PeerFeatures.IMMEDIATE_DATA) != 0;
    }

    @Override
    protected boolean doesAtomics() {
        return (peerFeatures & PeerFeatures.ATOMICS) != 0;
    }

    /** Both sides have accepted. */
    FpduStream startStream(SoftSocket with, boolean crc, int outboundDepth, int inboundDepth) throws IOException {
        OutboundReads outbound = new OutboundReads(sendRing, outboundDepth);
        InboundReads inbound = new InboundReads(inboundDepth);
        FpduParser parser = new FpduParser(
                this,
                domain,
                connectionMemory,
                sendRing,
                outbound,
                inbound,
                crc ? with.io().crc() : null);
        FpduStream made = new FpduStream(
                new FpduSender(with, sendRing, crc, outbound, inbound),
                outbound,
                parser,
                new SocketReader(with, parser, this));
        stream = made;
        with.enterRing();
        return made;
    }

    private int maxUlpduBytes() {
        int max = softOptions.maxFpduBytes();
        if (max == 0) {
            max = (peerFeatures & PeerFeatures.LARGE_SEGMENTS) != 0
                    ? Rdmap.MAX_ULPDU_BYTES + 2 + Rdmap.CRC_BYTES
                    : TcpChannels.segmentBytes(localAddress());
        }
        return Math.min(Rdmap.MAX_ULPDU_BYTES, (max & ~3) - 2 - Rdmap.CRC_BYTES);
    }

    /** Reports the connection as established to its user. */
    void becomeConnected(byte[] privateData) {
        FpduStream with = requireStream();
        with.out.setMaxUlpduBytes(maxUlpduBytes());
        if (peerFeatures == 0) {
            with.out.splitShortReads();
        }
        with.parser.setFeatures(peerFeatures);
        becomeConnected(with.outbound.depth(), privateData);
    }

    @Override
    public boolean onSegment(int opcode, int key, long offset, int payloadBytes) {
        SoftSetup before = setup;
        if (before == null) {
            return true;
        }
        setup = null;
        return !before.onSegment(requireStream().out, opcode, key, offset, payloadBytes) || isOpen();
    }

    @Override
    protected void pump() {
        FpduSender out = requireStream().out;
        if (!out.isBlocked() && out.hasWork()) {
            pumpNow();
        }
    }

    @Override
    public void push() {
        SoftSocket now = socket;
        if (now != null) {
            now.push();
        }
    }

    private void pumpNow() {
        try {
            FpduStream now = requireStream();
            if (now.out.pump()) {
                scheduleTurn();
            }
            SoftSocket its = requireSocket();
            if (its.isOnRing() && now.in.wantsDirect()) { // a read was requested
                its.readDirectly();
            }
        } catch (IOException e) {
            end.reset();
            fail(new ConnectionException.Lost("writing to " + remoteAddress + ": " + e.getMessage(), e));
        } catch (FpduSender.RegionGoneException e) {
            end.reset();
            fail(new ConnectionException("serving " + remoteAddress + ": " + e.getMessage()));
        } catch (FpduSender.ResponseRefusedException e) {
            end.tellPeer(TerminateReason.RDMAP_INVALID_STAG);
            fail(new ConnectionException("serving " + remoteAddress + ": " + e.getMessage()));
        } catch (IllegalStateException e) {
            // The arena of registered memory was closed while work was out.
            end.reset();
            fail(e);
        }
    }

    @Override
    protected @Nullable SoftwareIoHandler io() {
        SoftSocket now = socket;
        return now == null ? null : now.ioOrNull();
    }

    @Override
    public boolean isHeadDone() {
        FpduSender out = sender();
        return out != null && out.isHeadDone();
    }

    @Override
    public @Nullable Placement receiveInProgress() {
        FpduStream now = stream;
        return now == null ? null : now.parser.receiveInProgress();
    }

    @Override
    public ConnectionEnd outcome() {
        return end;
    }

    // Events of the socket.

    @Override
    public void onReadable() {
        if (!readsMuch) {
            read();
        } else if (!isReadScheduled) {
            isReadScheduled = true;
            requireSocket().io().runAfterPoll(readTurn);
        }
    }

    private void readInTurn() {
        isReadScheduled = false;
        try {
            read();
        } catch (Throwable t) {
            onFailure(t);
        }
    }

    private void read() {
        if (isInTurn() || !isOpen() || !requireSocket().mayRead()) {
            return;
        }
        beginTurn();
        try {
            SoftSetup before = setup;
            FpduStream now = stream;
            if ((before == null || !before.onReadable(requireSocket())) && now != null) {
                receive(now.in);
            }
        } catch (IOException e) {
            readingFailed(e);
        }
        leaveTurn();
    }

    private void readingFailed(IOException e) {
        end.reset();
        fail(
                isComingUp()
                        ? new ConnectionException("setting up with " + remoteAddress + ": " + e.getMessage(), e)
                        : new ConnectionException.Lost("reading from " + remoteAddress + ": " + e.getMessage(), e));
    }

    @Override
    public void onReceived(ByteBuffer buffer, MemorySegment segment, int from, int bytes) {
        if (!isOpen()) {
            return;
        }
        beginTurn();
        reports.reportSends();
        SocketReader in = requireStream().in;
        in.feed(buffer, segment, from, bytes);
        if (in.wantsDirect()) {
            requireSocket().readDirectly();
        }
        leaveTurn();
    }

    @Override
    public void onEnded(@Nullable IOException cause) {
        if (!isOpen()) {
            return;
        }
        beginTurn();
        if (cause == null) {
            onPeerEnded(requireStream().in);
        } else {
            readingFailed(cause);
        }
        leaveTurn();
    }

    /** Payload that came and was not read straight to its place. On the loop. */
    long copiedBytes() {
        return requireStream().parser.copiedBytes();
    }

    /** All that came once the stream had begun. On the loop. */
    long receivedBytes() {
        return requireStream().in.receivedBytes();
    }

    private void receive(SocketReader in) throws IOException {
        reports.reportSends();
        int turnBytes = 0;
        do {
            int bytes = in.readOnce();
            if (bytes < 0) {
                onPeerEnded(in);
                return;
            }
            turnBytes += bytes;
        } while (turnBytes < TURN_BYTES && isOpen() && in.hasMore());
        readsMuch = turnBytes >= MUCH_BYTES;
        SoftSocket its = requireSocket();
        if (turnBytes < SocketReader.DIRECT_BYTES && its.isOnRing() && !in.wantsDirect()) {
            its.receiveByRing();
        }
    }

    private void onPeerEnded(SocketReader in) {
        if (isComingUp()) {
            fail(new ConnectionException(
                    "accepting from " + remoteAddress + ": the peer closed the connection before it was established"));
        } else {
            endWithPeer(!in.isUnfinished());
        }
    }

    @Override
    public void onWritable() {
        if (isComingUp() && !isPrepared()) {
            requireSetup().onWritable(requireSocket());
        } else if (isConnected() && !isInTurn()) {
            beginTurn();
            boolean waited = !hasSentCopies();
            pumpNow();
            if (waited && hasSentCopies()) {
                reports.copiesSent();
            }
            leaveTurn();
        }
    }

    @Override
    public void onTick() {
        FpduStream watched = stream;
        if (!isConnected() || watched == null) {
            return;
        }
        long min = Math.max(1, (long) softOptions.leastBytesPerSecond() * softOptions.stallTimeoutMillis() / 1000);
        String slow = watched.overdue(requireSocket().io().tick(), min);
        if (slow != null) {
            end.reset();
            fail(new ConnectionException.Lost("the peer " + remoteAddress + " was silent, or slower than "
                    + softOptions.leastBytesPerSecond() + " bytes a second, for " + softOptions.stallTimeoutMillis()
                    + " ms while this side waited for " + slow
                    + " (org.verbena.soft.stallTimeoutMillis, leastBytesPerSecond)"));
            turn();
        }
    }

    @Override
    protected void distrust() {
        end.reset();
    }

    @Override
    protected void closeSocketNow() {
        SoftSocket now = socket;
        if (now != null) {
            now.closeNow();
        }
    }

    // Events of the parser.

    @Override
    public void onRefused(TerminateReason reason, String what, @Nullable String denial, byte[] message) {
        if (!isOpen()) {
            return;
        }
        end.tellPeer(message);
        String text = "refused " + what + " from " + remoteAddress + ": " + (denial == null ? "" : denial + "; ")
                + "the peer was notified by a TERMINATE message: " + TerminateReason.describe(reason.control());
        if (denial != null) {
            context.guesses().refused(remoteAddress.getAddress(), System.nanoTime());
        }
        context.incidents().report(PeerErrorLog.Kind.SEGMENT, text);
        fail(refusal(text));
    }

    @Override
    public void onTerminate(byte[] message) {
        FpduStream with = requireStream();
        TerminateDecoder.Ending ending = TerminateDecoder.decode(message, remoteAddress, with.out, with.outbound);
        WorkStatus status = ending.reason().status;
        end.requestFailed(ending.sequence(), status);
        String why = TerminateReason.describe(ending.control());
        LOG.info("{} ended the connection: {}", remoteAddress, why);
        fail(new WorkCompletionException(
                ending.operation() + ", terminated by the peer with " + why + ",", status, ending.control()));
    }

    // The end.

    @Override
    protected void release() {
        FpduStream ended = stream;
        if (ended != null) {
            ended.in.close();
            ended.out.close();
        }
    }

    /** Sends the peer what is still to be sent, and makes the socket close itself. */
    @Override
    protected void leavePeer() {
        SoftSetup before = setup;
        if (before != null) {
            before.cancelTimeout();
        }
        SoftSocket now = socket;
        FpduSender out = sender();
        if (now == null) {
            return;
        }
        if (out != null) {
            end.leave(now, out, remoteAddress);
            return;
        }
        MpaFrame request = before == null ? null : before.request();
        if (request == null || end.isReset()) {
            now.closeNow();
        } else {
            // Accepted, but not answered: this side cannot do it after all.
            context.incidents().report(PeerErrorLog.Kind.LOCAL, "cannot serve " + remoteAddress + ": " + end.cause());
            now.closeGracefully(
                    ByteBuffer.wrap(MpaFrame.rejectionOf(request, rejection()).encode()));
        }
    }

    private SoftSetup requireSetup() {
        SoftSetup now = setup;
        if (now == null) {
            throw new IllegalStateException("the setup is over");
        }
        return now;
    }

    private SoftSocket requireSocket() {
        SoftSocket now = socket;
        if (now == null) {
            throw new IllegalStateException("no socket yet");
        }
        return now;
    }

    private @Nullable FpduSender sender() {
        FpduStream now = stream;
        return now == null ? null : now.out;
    }

    private FpduStream requireStream() {
        FpduStream now = stream;
        if (now == null) {
            throw new IllegalStateException("no stream yet");
        }
        return now;
    }

    @Override
    public String toString() {
        return describe("soft");
    }
}
