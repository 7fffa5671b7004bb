package org.verbena.transport.soft;

import io.netty.channel.IoEventLoop;
import io.netty.channel.nio.NioIoOps;
import io.netty.util.concurrent.ScheduledFuture;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
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
final class SoftEndpoint implements Endpoint, SoftSocket.Owner, SegmentSink {
    private static final Logger LOG = LoggerFactory.getLogger(SoftEndpoint.class);

    /** The most that an inline request carries: beyond it a copy costs more than holding the memory. */
    static final int MAX_INLINE_BYTES = 4096;

    /**
     * What one endpoint may read before others get their turn, and before what was read is answered. Peers that answer each other work at once only if
     * turns are short: as {@code bench/peers} and {@code bench/rpc} measured, turns of 1 MiB cost a tenth and more of the throughput of 64 messages of 64 KiB or 1 MiB.
     */
    private static final int TURN_BYTES = 256 * 1024;

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
    private final SoftContext context;
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
    private @Nullable FpduStream stream;
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

    /**
     * Made by connect or accept.
     *
     * @param loop its thread
     * @param context of the provider
     * @param options asked for
     * @param handler hears of it
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
            TcpChannels.configure(channel, softOptions.stallTimeoutMillis(), options.trafficClass());
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
            fail(TcpChannels.connectFailure(remoteAddress, e));
            turn();
        }
    }

    private void startTimeout(String step) {
        timeout = loop.schedule(
                () -> {
                    if (state < CONNECTED) {
                        fail(new ConnectionException.TimedOut(
                                step + " with " + remoteAddress + ": not established after "
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
            writeFrame(now, MpaNegotiation.request(softOptions, options));
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

    /** A setup frame is tiny and the socket's buffer is empty: it goes out at once, or something is wrong. */
    private static void writeFrame(SoftSocket to, MpaFrame frame) throws IOException {
        ByteBuffer bytes = ByteBuffer.wrap(frame.encode());
        to.channel().write(bytes);
        if (bytes.hasRemaining()) {
            throw new IOException("the socket did not accept a setup frame of " + bytes.limit() + " bytes at once");
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
                                        ? ", and does it know revision 2 (else set org.verbena.soft.mpaRevision=1)?"
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
            terminate = message(reason);
        }
        fail(new ConnectionException("connecting to " + remoteAddress + ": " + what));
    }

    /** Connecting side: the reply says yes. */
    private void onAccepted(MpaFrame reply) {
        MpaNegotiation.Terms terms = MpaNegotiation.accepted(softOptions, options, reply);
        peerFeatures = terms.peerFeatures();
        FpduSender out = startStream(terms.crc(), terms.outboundReads(), terms.inboundReads()).out;
        out.open();
        TerminateReason trouble = terms.trouble();
        if (trouble != null) {
            failSetup("setup failed: " + trouble.meaning, trouble);
            return;
        }
        FpduSender.ReadyMessage ready = terms.ready();
        if (ready != null) {
            out.sayReady(ready);
        }
        becomeConnected(terms.privateData());
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
        try {
            TcpChannels.configure(channel, softOptions.stallTimeoutMillis(), options.trafficClass());
            SoftSocket made = inPlace == null ? new SoftSocket(loop, channel, this) : inPlace;
            if (inPlace == null) {
                made.register();
            } else {
                made.setOwner(this);
            }
            socket = made;
            request = from;
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
                TcpChannels.closeQuietly(channel);
            }
            inTurn = false;
            reset = e instanceof IOException;
            fail(new ConnectionException("accepting from " + remoteAddress + ": " + e.getMessage(), e));
            turn();
        }
    }

    private void reply(SoftSocket to, MpaFrame from) throws IOException {
        MpaNegotiation.Answer answer = MpaNegotiation.answer(softOptions, options, from);
        writeFrame(to, answer.frame());
        startStream(answer.frame().crc(), answer.outboundReads(), answer.inboundReads());
        awaitsFirstSegment = true;
        to.await(NioIoOps.READ);
        if (!answer.peerToPeer()) {
            // The peer says nothing until its user does: for the users the connection is up; what this side sends
            // waits.
            becomeConnected(from.privateData());
        }
    }

    private FpduStream startStream(boolean crc, int outboundDepth, int inboundDepth) {
        SoftSocket with = requireSocket();
        OutboundReads outbound = new OutboundReads(sendRing, outboundDepth);
        InboundReads inbound = new InboundReads(inboundDepth);
        int sges =
                sharedQueue == null ? options.maxSges() : Math.max(options.maxSges(), SoftSharedReceiveQueue.MAX_SGES);
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

    private void becomeConnected(byte[] privateData) {
        state = CONNECTED;
        ScheduledFuture<?> waiting = timeout;
        if (waiting != null) {
            timeout = null;
            waiting.cancel(false);
        }
        capabilities = capabilities(readDepth);
        FpduStream with = requireStream();
        with.out.setMaxUlpduBytes(maxUlpduBytes());
        if (peerFeatures == 0) {
            with.out.splitShortReads();
        }
        with.parser.setFeatures(peerFeatures);
        request = null;
        try {
            handler.onConnected(this, privateData);
        } catch (Throwable t) {
            fail(t);
        }
    }

    @Override
    public boolean onSegment(int opcode, int key, long offset, int payloadBytes) {
        if (!awaitsFirstSegment) {
            return true;
        }
        awaitsFirstSegment = false;
        requireStream().out.open();
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
            WorkChecks.checkRemote(remoteAddress, peerFeatures, readDepth, work);
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
        if (inTurn) {
            // The end of the turn sends everything together.
            return;
        }
        FpduSender out = requireStream().out;
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
                // From turn to turn the sockets have a say in between; Netty runs tasks for up to a second without one.
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
            FpduSender out = requireStream().out;
            if (out.pump()) {
                scheduleTurn();
            }
        } catch (IOException e) {
            reset = true;
            fail(new ConnectionException.Lost("writing to " + remoteAddress + ": " + e.getMessage(), e));
        } catch (FpduSender.RegionGoneException e) {
            reset = true;
            fail(new ConnectionException("serving " + remoteAddress + ": " + e.getMessage()));
        } catch (FpduSender.ResponseRefusedException e) {
            terminate = message(TerminateReason.RDMAP_INVALID_STAG);
            fail(new ConnectionException("serving " + remoteAddress + ": " + e.getMessage()));
        } catch (IllegalStateException e) {
            // The arena of registered memory was closed while work was out.
            reset = true;
            fail(e);
        }
    }

    private void reportSends() {
        FpduSender out = sender();
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
            } else if (stream != null) {
                receive(stream.in);
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
            try {
                if (requireSocket().channel().finishConnect()) {
                    onTcpConnected();
                }
            } catch (IOException e) {
                inTurn = false;
                fail(TcpChannels.connectFailure(remoteAddress, e));
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
        FpduStream watched = stream;
        if (state != CONNECTED || watched == null) {
            return;
        }
        long least = Math.max(1, (long) softOptions.leastBytesPerSecond() * softOptions.stallTimeoutMillis() / 1000);
        String slow = watched.overdue(requireSocket().io().tick(), least);
        if (slow != null) {
            reset = true;
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
        receiveFailed = true;
    }

    @Override
    public void onReceived(Placement receive, int bytes, int flags, int word) {
        long workId = receive.workId();
        receive.end();
        reportReceive(workId, WorkStatus.SUCCESS, bytes, flags, word);
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
        terminate = message;
        String text = "refused " + what + " from " + remoteAddress + ": " + (denial == null ? "" : denial + "; ")
                + "the peer was notified by a TERMINATE message: " + TerminateReason.describe(reason.control());
        Throwable why = receiveFailed
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
        failedSequence = ending.sequence();
        failedStatus = ending.reason().status;
        String why = TerminateReason.describe(ending.control());
        LOG.info("{} ended the connection: {}", remoteAddress, why);
        fail(new WorkCompletionException(
                ending.operation() + ", terminated by the peer with " + why + ",", failedStatus, ending.control()));
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
        FpduSender out = sender();
        while (out != null && out.isHeadDone() && sendRing.head() != failedSequence) {
            completeHead(WorkStatus.SUCCESS);
        }
        while (!sendRing.isEmpty()) {
            completeHead(sendRing.head() == failedSequence ? failedStatus : WorkStatus.FLUSHED);
        }
        FpduStream ended = stream;
        if (ended != null) {
            Placement receive = ended.parser.receiveInProgress();
            if (receive.isActive()) {
                long workId = receive.workId();
                receive.end();
                reportReceive(workId, receiveFailed ? WorkStatus.LOCAL_LENGTH_ERROR : WorkStatus.FLUSHED, 0, 0, 0);
            }
            ended.in.close();
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

    /** A Terminate message's payload that names no segment. */
    private static byte[] message(TerminateReason reason) {
        return ByteBuffer.allocate(4).putShort((short) reason.control()).array();
    }

    /** Sends what is owed to the peer, as far as that goes, and lets the socket close itself. */
    private void leaveSocket() {
        SoftSocket now = socket;
        if (now == null) {
            return;
        }
        FpduSender out = sender();
        if (out == null) {
            MpaFrame from = request;
            if (from == null || reset) {
                now.closeNow();
            } else {
                // Accepted, but not answered: this side cannot do it after all.
                context.incidents().report(Incidents.Kind.LOCAL, "cannot serve " + remoteAddress + ": " + cause);
                now.closeGracefully(
                        ByteBuffer.wrap(MpaFrame.rejectionOf(from, rejection()).encode()));
            }
            return;
        }
        ByteBuffer lastBytes = null;
        if (!reset) {
            out.stopSending();
            try {
                try {
                    out.pump();
                } catch (FpduSender.ResponseRefusedException e) {
                    terminate = terminate == null ? message(TerminateReason.RDMAP_INVALID_STAG) : terminate;
                }
                lastBytes = out.lastBytes(terminate);
                reset = lastBytes == null;
            } catch (IOException | FpduSender.RegionGoneException e) {
                LOG.debug("the last bytes to {}: {}", remoteAddress, e.toString());
                reset = true;
            }
        }
        if (reset) {
            now.reset();
        } else {
            now.closeGracefully(lastBytes != null && lastBytes.hasRemaining() ? lastBytes : null);
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
