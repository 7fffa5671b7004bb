package org.verbena.transport.soft;

import io.netty.channel.IoEventLoop;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.software.CompletionReports;
import org.verbena.transport.software.ConnectionMemory;
import org.verbena.transport.software.InboundReads;
import org.verbena.transport.software.Placement;
import org.verbena.transport.software.SendRing;
import org.verbena.transport.software.SoftwareDomain;
import org.verbena.transport.software.SoftwareReceiveQueue;
import org.verbena.transport.software.WorkChecks;
import org.verbena.transport.software.WorkRing;
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
 * <p>Everything happens in turns: the socket can be read, can be written, or a task runs. Within a turn the handler is
 * called as events are found, and what it posts meanwhile is sent together at the end of the turn. Outside a turn, in a
 * method that the user called, there are no callbacks: completions wait for the next turn, which a task provides.
 *
 * <pre>{@code
 * CONNECTING --TCP up, prepared--> SETUP --reply--> CONNECTED --disconnect, error, peer--> DRAINING --> CLOSED
 *      |                             |  accepting: reply sent, first FPDU of the peer        ^
 *      +-----------------------------+--------------------------------------------------------+
 * }</pre>
 */
final class SoftEndpoint implements Endpoint, SoftSocket.Owner, SegmentSink, CompletionReports.Owner {
    private static final Logger LOG = LoggerFactory.getLogger(SoftEndpoint.class);

    /** The most that an inline request carries: beyond it a copy costs more than holding the memory. */
    static final int MAX_INLINE_BYTES = 4096;

    /**
     * What one endpoint may read before others get their turn, and before what was read is answered. Peers that answer
     * each other overlap their work only if turns are short: as {@code bench/peers} and {@code bench/rpc} measured,
     * turns of 1 MiB cost a tenth and more of the throughput of 64 messages of 64 KiB or 1 MiB.
     */
    private static final int TURN_BYTES = 256 * 1024;

    /**
     * The most that fits one FPDU with its headers: so large a payload is read in place, and a long message needs as
     * few FPDUs as possible.
     */
    private static final int RECEIVE_BUFFER_BYTES = 63 << 10;

    /** Suits thousands of connections, most of them idle: each keeps several of these buffers for itself. */
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
    private final SoftContext context;
    private final SoftwareDomain domain;
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
    private @Nullable SoftwareReceiveQueue sharedQueue;
    private @Nullable EndpointCapabilities capabilities;

    private final int maxInlineBytes;
    private final SendRing sendRing;
    private final WorkRing receiveRing;
    private final CompletionReports reports;
    private @Nullable FpduStream stream;

    /** Until the connection is up and the peer's first segment has come. */
    private @Nullable SoftSetup setup;

    private int peerFeatures;
    private int readDepth;

    private boolean inTurn;
    private boolean turnScheduled;

    /** Something was thrown that nobody expects, and the connection is being ended for it. */
    private boolean failed;

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
        this.loop = loop;
        this.context = context;
        domain = context.domain();
        connectionMemory = new ConnectionMemory(domain);
        softOptions = context.options();
        this.options = options;
        this.handler = handler;
        this.remoteAddress = remoteAddress;
        this.initiator = initiator;
        maxInlineBytes = Math.min(options.maxInlineBytes(), MAX_INLINE_BYTES);
        sendRing = new SendRing(options.sendDepth(), options.maxSges(), maxInlineBytes);
        // With shared receives it stays empty.
        receiveRing = new WorkRing(options.sharedReceiveQueue() ? 1 : options.receiveDepth(), options.maxSges());
        reports = new CompletionReports(this, handler, sendRing, receiveRing);
        setup = new SoftSetup(this, loop, softOptions, options, remoteAddress);
    }

    // Setting up.

    /**
     * Starts to connect.
     *
     * @param loop its thread
     * @param context of the provider
     * @param options asked for
     * @param handler hears of it
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
        loop.execute(() -> made.connect(bound));
        return made;
    }

    /** Connects; on the loop. */
    private void connect(@Nullable SocketChannel bound) {
        assert loop.inEventLoop();
        if (state != CONNECTING) {
            if (bound != null) {
                TcpChannels.closeQuietly(bound);
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
        if (channel == null || state != CONNECTING) {
            if (inPlace != null) {
                inPlace.closeNow();
            } else if (channel != null) {
                TcpChannels.closeQuietly(channel);
            }
            fail(new ConnectionException(
                    "accepting from " + remoteAddress + ": the peer disconnected before it was accepted"));
            turn();
            return;
        }
        requireSetup().accept(channel, inPlace, from);
    }

    // What the setup finds.

    boolean isComingUp() {
        return state < CONNECTED;
    }

    boolean isTcpConnected() {
        return state > CONNECTING;
    }

    void setSocket(SoftSocket made) {
        socket = made;
    }

    void setPeerFeatures(int features) {
        peerFeatures = features;
    }

    /** TCP is up: what is posted may be prepared. Gives whether to go on. */
    boolean prepare(SoftSocket with) throws IOException {
        state = SETUP;
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
        return state == SETUP;
    }

    @Override
    public int rendezvousBytes(int peerReceiveBytes) {
        return peerReceiveBytes < RECEIVE_BUFFER_BYTES ? SMALL_RECEIVE_RENDEZVOUS_BYTES : RENDEZVOUS_BYTES;
    }

    private EndpointCapabilities capabilities(int readDepth) {
        return new EndpointCapabilities.Builder()
                .sendDepth(options.sendDepth())
                .receiveDepth(sharedQueue == null ? options.receiveDepth() : sharedQueue.depth())
                .maxSges(options.maxSges())
                .maxReadSges(options.maxSges())
                .maxInlineBytes(maxInlineBytes)
                .readDepth(readDepth)
                .maxMessageBytes(Integer.MAX_VALUE)
                .atomics((peerFeatures & PeerFeatures.ATOMICS) != 0 && readDepth > 0)
                .immediateData((peerFeatures & PeerFeatures.IMMEDIATE_DATA) != 0)
                .sendWithInvalidate(true)
                .receiveBufferBytes(sharedQueue == null ? RECEIVE_BUFFER_BYTES : SHARED_RECEIVE_BUFFER_BYTES)
                .connectionMemory(true)
                .build();
    }

    /** Both sides have accepted. */
    FpduStream startStream(SoftSocket with, boolean crc, int outboundDepth, int inboundDepth) {
        OutboundReads outbound = new OutboundReads(sendRing, outboundDepth);
        InboundReads inbound = new InboundReads(inboundDepth);
        int sges = sharedQueue == null ? options.maxSges() : Math.max(options.maxSges(), SoftwareReceiveQueue.MAX_SGES);
        FpduParser parser = new FpduParser(
                this,
                domain,
                connectionMemory,
                sendRing,
                outbound,
                inbound,
                sges,
                crc ? with.io().crc() : null);
        FpduStream made = new FpduStream(
                new FpduSender(with, sendRing, crc, outbound, inbound),
                outbound,
                parser,
                new SocketReader(with, parser, this));
        stream = made;
        readDepth = outboundDepth;
        return made;
    }

    private int maxUlpduBytes() {
        int most = softOptions.maxFpduBytes();
        if (most == 0) {
            most = (peerFeatures & PeerFeatures.LARGE_SEGMENTS) != 0
                    ? Rdmap.MAX_ULPDU_BYTES + 2 + Rdmap.CRC_BYTES
                    : TcpChannels.segmentBytes(localAddress());
        }
        return Math.min(Rdmap.MAX_ULPDU_BYTES, (most & ~3) - 2 - Rdmap.CRC_BYTES);
    }

    /** Reports the connection as established to its user. */
    void becomeConnected(byte[] privateData) {
        state = CONNECTED;
        capabilities = capabilities(readDepth);
        FpduStream with = requireStream();
        with.out.setMaxUlpduBytes(maxUlpduBytes());
        if (peerFeatures == 0) {
            with.out.splitShortReads();
        }
        with.parser.setFeatures(peerFeatures);
        try {
            handler.onConnected(this, privateData);
        } catch (Throwable t) {
            fail(t);
        }
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

    // Calls of the user.

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
    public void allowRemoteAccess(boolean allowed) {
        connectionMemory.allow(allowed);
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
        WorkChecks.checkReceive(domain, options.maxSges(), buffers);
        if (!prepared || state >= DRAINING || receiveRing.isFull()) {
            return false;
        }
        receiveRing.add(workId, buffers);
        return true;
    }

    @Override
    public boolean post(WorkRequest work) {
        assert loop.inEventLoop();
        WorkChecks.checkLocal(domain, options.maxSges(), maxInlineBytes, work);
        if (state == CONNECTED) {
            WorkChecks.checkRemote(
                    remoteAddress,
                    (peerFeatures & PeerFeatures.IMMEDIATE_DATA) != 0,
                    (peerFeatures & PeerFeatures.ATOMICS) != 0,
                    readDepth,
                    work);
        }
        if (state != CONNECTED || sendRing.isFull()) {
            return false;
        }
        sendRing.add(work);
        return true;
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
        FpduSender out = requireStream().out;
        if (!out.isBlocked()) {
            pump();
        }
        if (!inTurn && (state == DRAINING || out.isHeadDone())) {
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
                    "connecting with " + remoteAddress + ": closed by this side before it was established"));
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
                // The sockets are polled between two turns; Netty may run tasks for up to a second without polling
                // them.
                now.io().runAfterPoll(turnTask);
                return;
            }
            try {
                loop.execute(turnTask);
            } catch (RejectedExecutionException e) {
                // The loop is ending; onLoopEnding does the rest.
                turnScheduled = false;
                LOG.debug("no more processing for {}", this, e);
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
        } catch (Throwable t) {
            onFailure(t);
        }
    }

    void beginTurn() {
        inTurn = true;
    }

    /** Ends the connection now, whether in a turn or not. */
    void endNow(Throwable why) {
        inTurn = false;
        fail(why);
        turn();
    }

    /** Ends a turn: reports what is done, sends what was posted, and drains if the connection has ended. */
    void leaveTurn() {
        if (state == CONNECTED) {
            reportSends();
            reports.endBatch();
        }
        if (state == CONNECTED) {
            FpduSender out = requireStream().out;
            if (!out.isBlocked() && out.hasWork()) {
                pump();
            }
        }
        if (state == DRAINING) {
            drain();
        }
        FpduSender out = sender();
        if (state == CONNECTED && out != null && out.isHeadDone()) {
            scheduleTurn();
        }
        inTurn = false;
    }

    private void pump() {
        try {
            FpduSender out = requireStream().out;
            if (out.pump()) {
                scheduleTurn();
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

    private void reportSends() {
        FpduSender out = sender();
        if (out != null) {
            reports.reportSends();
        }
    }

    @Override
    public boolean isConnected() {
        return state == CONNECTED;
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

    @Override
    public void countCompletion() {
        SoftSocket counting = socket;
        if (counting != null) {
            counting.completed();
        }
    }

    // Events of the socket.

    @Override
    public void onReadable() {
        if (inTurn || state >= DRAINING) {
            return;
        }
        inTurn = true;
        try {
            SoftSetup before = setup;
            FpduStream now = stream;
            if ((before == null || !before.onReadable(requireSocket())) && now != null) {
                receive(now.in);
            }
        } catch (IOException e) {
            end.reset();
            fail(
                    state < CONNECTED
                            ? new ConnectionException("setting up with " + remoteAddress + ": " + e.getMessage(), e)
                            : new ConnectionException.Lost("reading from " + remoteAddress + ": " + e.getMessage(), e));
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
        reportSends();
        int turnBytes = 0;
        while (turnBytes < TURN_BYTES && isOpen()) {
            int bytes = in.readOnce();
            if (bytes < 0) {
                onPeerEnded(in);
                return;
            }
            turnBytes += bytes;
            if (!in.hasMore()) {
                return;
            }
        }
    }

    private void onPeerEnded(SocketReader in) {
        if (state == SETUP) {
            fail(new ConnectionException(
                    "accepting from " + remoteAddress + ": the peer closed the connection before it was established"));
        } else if (in.isUnfinished()) {
            fail(new ConnectionException.Lost(
                    "the peer " + remoteAddress + " closed the connection in the middle of a message"));
        } else {
            state = DRAINING;
        }
    }

    @Override
    public void onWritable() {
        if (state == CONNECTING) {
            requireSetup().onWritable(requireSocket());
        } else if (state == CONNECTED && !inTurn) {
            inTurn = true;
            pump();
            leaveTurn();
        }
    }

    @Override
    public void onTick() {
        FpduStream watched = stream;
        if (state != CONNECTED || watched == null) {
            return;
        }
        long least = Math.max(1, (long) softOptions.leastBytesPerSecond() * softOptions.stallTimeoutMillis() / 1000);
        String slow = watched.overdue(requireSocket().io().tick(), least);
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
    public void onFailure(Throwable thrown) {
        LOG.error("closing the connection with {} after an error in the provider", remoteAddress, thrown);
        end.reset();
        if (!failed) {
            failed = true;
            endNow(thrown);
            return;
        }
        // It happened again in what ends the connection, which would fail without end.
        SoftSocket now = socket;
        if (now != null) {
            now.closeNow();
        }
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

    // Events of the parser.

    @Override
    public boolean isOpen() {
        return state < DRAINING;
    }

    @Override
    public boolean takeReceive(Placement into) {
        WorkRing ring = sharedQueue == null ? receiveRing : sharedQueue.ring();
        if (ring.isEmpty()) {
            return false;
        }
        ring.moveHeadTo(into);
        return true;
    }

    @Override
    public void receiveTooSmall() {
        end.receiveTooSmall();
    }

    @Override
    public void onReceived(Placement receive, int bytes, int flags, int word) {
        reports.reportReceive(receive, WorkStatus.SUCCESS, bytes, flags, word);
    }

    @Override
    public void onAnswered() {
        reportSends();
    }

    @Override
    public void onRefused(TerminateReason reason, String what, @Nullable String denial, byte[] message) {
        if (state >= DRAINING) {
            return;
        }
        end.tellPeer(message);
        String text = "refused " + what + " from " + remoteAddress + ": " + (denial == null ? "" : denial + "; ")
                + "the peer was notified by a TERMINATE message: " + TerminateReason.describe(reason.control());
        Throwable why = end.hasReceiveFailed()
                ? new WorkCompletionException(
                        "receive for a message from " + remoteAddress, WorkStatus.LOCAL_LENGTH_ERROR, 0)
                : new ConnectionException(text);
        if (denial != null) {
            context.guesses().refused(remoteAddress.getAddress(), System.nanoTime());
        }
        context.incidents().report(Incidents.Kind.SEGMENT, text);
        fail(why);
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

    /** Notes why the connection ends; the end of the turn does it. The first cause counts. */
    @Override
    public void fail(Throwable why) {
        if (state < DRAINING) {
            state = DRAINING;
            end.setCause(why);
            if (!inTurn) {
                scheduleTurn();
            }
        }
    }

    private void drain() {
        SoftSetup before = setup;
        if (before != null) {
            before.cancelTimeout();
        }
        leaveSocket();
        FpduStream ended = stream;
        reports.reportRest();
        if (ended != null) {
            ended.in.close();
            ended.out.close();
        }
        reports.endBatch();
        state = CLOSED;
        try {
            handler.onDisconnected(this, end.cause());
        } catch (Throwable t) {
            LOG.warn("the handler of {} threw at the end of its connection", this, t);
        }
    }

    /** Sends the peer what is still to be sent, and has the socket close itself. */
    private void leaveSocket() {
        SoftSocket now = socket;
        FpduSender out = sender();
        if (now == null) {
            return;
        }
        if (out != null) {
            end.leave(now, out, remoteAddress);
            return;
        }
        SoftSetup before = setup;
        MpaFrame request = before == null ? null : before.request();
        if (request == null || end.isReset()) {
            now.closeNow();
        } else {
            // Accepted, but not answered: this side cannot do it after all.
            context.incidents().report(Incidents.Kind.LOCAL, "cannot serve " + remoteAddress + ": " + end.cause());
            now.closeGracefully(
                    ByteBuffer.wrap(MpaFrame.rejectionOf(request, rejection()).encode()));
        }
    }

    private byte[] rejection() {
        try {
            return handler.rejection(this);
        } catch (Throwable t) {
            LOG.warn("the handler of {} threw when asked for a rejection", this, t);
            return new byte[0];
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
        return "soft endpoint " + localAddress + (initiator ? " -> " : " <- ") + remoteAddress;
    }
}
