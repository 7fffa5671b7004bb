package org.verbena.transport.shm;

import io.netty.channel.IoEventLoop;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.software.CompletionReports;
import org.verbena.transport.software.ConnectionMemory;
import org.verbena.transport.software.ConnectionOutcome;
import org.verbena.transport.software.InboundReads;
import org.verbena.transport.software.Placement;
import org.verbena.transport.software.SendRing;
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
 * One connection through shared memory.
 *
 * <p>Everything happens in turns: the ring is polled, the socket has something, or a task runs. Within a turn the handler
 * is called as events are found, and what it posts meanwhile is sent together at the end of the turn. Outside a turn, in
 * a method that the user called, there are no callbacks: completions wait for the next turn, which a task provides.
 *
 * <pre>{@code
 * SETUP --reply--> CONNECTED --disconnect, error, peer--> DRAINING --> CLOSED
 *   |                                                        ^
 *   +--------------------------------------------------------+
 * }</pre>
 */
final class ShmEndpoint
        implements Endpoint, ControlSocket.Owner, RingReceiver.Owner, CompletionReports.Owner, Publisher.Announcer {
    private static final Logger LOG = LoggerFactory.getLogger(ShmEndpoint.class);

    /** The most that an inline request carries: beyond it a copy costs more than holding the memory. */
    private static final int MAX_INLINE_BYTES = 4096;

    private static final int RECEIVE_BUFFER_BYTES = 63 << 10;
    private static final int SHARED_RECEIVE_BUFFER_BYTES = 16 << 10;
    /** Beyond it a message that the receiver copies once is quicker than one through the ring. */
    private static final int RENDEZVOUS_BYTES = 32 << 10;

    private static final int SETUP = 0;
    private static final int CONNECTED = 1;
    private static final int DRAINING = 2;
    private static final int CLOSED = 3;

    private final IoEventLoop loop;
    private final ShmContext context;
    private final ConnectionMemory connectionMemory;
    private final PeerAccess access;
    private final EndpointOptions options;
    private final EndpointHandler handler;
    private final InetSocketAddress remoteAddress;
    private final boolean initiator;
    private final Runnable turnTask = this::turn;

    private int state = SETUP;
    private boolean prepared;
    private @Nullable ControlSocket socket;
    private @Nullable InetSocketAddress localAddress;
    private @Nullable SoftwareReceiveQueue sharedQueue;
    private @Nullable EndpointCapabilities capabilities;

    private final int maxInlineBytes;
    private final SendRing sendRing;
    private final WorkRing receiveRing;
    private final CompletionReports reports;
    private final ConnectionOutcome outcome = new ConnectionOutcome();
    private final ShmSetup setup;
    private @Nullable Rings rings;
    private int readDepth;

    /** What the peer is told when it ends; null for nothing but the end. */
    private @Nullable ByteBuffer lastWords;

    private boolean inTurn;
    private boolean turnScheduled;
    private boolean failed;

    /** Ticks of a second that the peer has owed something without any progress. */
    private int stalledTicks;

    private boolean progress;

    /** Polls since there was a record last. The handler's. */
    int idlePolls;

    /** Where it is among those that are polled, -1 if it is not. The handler's. */
    int awakeIndex = -1;

    /** The mapped file and the ends of its rings. */
    private record Rings(
            Arena arena,
            RingReader reader,
            RingReceiver in,
            RingSender out,
            Control control,
            DirectOperations direct,
            PeerFiles peerFiles,
            Publisher publisher) {
        /** Lets go of the peer's memory, and takes this side's back. */
        void close() {
            in.close();
            direct.close();
            publisher.close();
            peerFiles.close();
            arena.close();
        }
    }

    ShmEndpoint(
            IoEventLoop loop,
            ShmContext context,
            EndpointOptions options,
            EndpointHandler handler,
            InetSocketAddress remoteAddress,
            boolean initiator) {
        this.loop = loop;
        this.context = context;
        this.options = options;
        this.handler = handler;
        this.remoteAddress = remoteAddress;
        this.initiator = initiator;
        connectionMemory = new ConnectionMemory(context.domain());
        access = new PeerAccess(context.domain(), connectionMemory);
        maxInlineBytes = Math.min(options.maxInlineBytes(), MAX_INLINE_BYTES);
        sendRing = new SendRing(options.sendDepth(), options.maxSges(), maxInlineBytes);
        // With shared receives it stays empty.
        receiveRing = new WorkRing(options.sharedReceiveQueue() ? 1 : options.receiveDepth(), options.maxSges());
        reports = new CompletionReports(this, handler, sendRing, receiveRing);
        setup = new ShmSetup(this, loop, context.options(), options, remoteAddress);
    }

    static void checkOptions(EndpointOptions options) {
        if (options.minRnrTimerMicros() != EndpointOptions.DEVICE_DEFAULT) {
            throw new ConnectionException("minRnrTimerMicros " + options.minRnrTimerMicros()
                    + " is for InfiniBand and RoCE: the shared-memory provider never repeats a send");
        }
    }

    // Setting up.

    ShmSetup setup() {
        return setup;
    }

    boolean isComingUp() {
        return state == SETUP;
    }

    void setSocket(ControlSocket made) {
        socket = made;
    }

    /** The peer is reached: what is posted may be prepared. Gives whether to go on. */
    boolean prepare(InetSocketAddress local) {
        localAddress = local;
        if (options.sharedReceiveQueue()) {
            sharedQueue = requireSocket().io().sharedReceiveQueue();
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

    private EndpointCapabilities capabilities(int depth) {
        return new EndpointCapabilities.Builder()
                .sendDepth(options.sendDepth())
                .receiveDepth(sharedQueue == null ? options.receiveDepth() : sharedQueue.depth())
                .maxSges(options.maxSges())
                .maxReadSges(options.maxSges())
                .maxInlineBytes(maxInlineBytes)
                .readDepth(depth)
                .atomics(true)
                .immediateData(true)
                .sendWithInvalidate(true)
                .receiveBufferBytes(options.sharedReceiveQueue() ? SHARED_RECEIVE_BUFFER_BYTES : RECEIVE_BUFFER_BYTES)
                .connectionMemory(true)
                .build();
    }

    /**
     * Both sides have agreed.
     *
     * @param arena of the mapping; this endpoint's from now on
     * @param memory the mapped file
     * @param peer its process
     * @param ringBytes of one direction
     * @param depth reads and atomics out, in each direction
     * @param privateData of the peer
     */
    void becomeConnected(Arena arena, MemorySegment memory, long peer, int ringBytes, int depth, byte[] privateData) {
        readDepth = depth;
        capabilities = capabilities(depth);
        InboundReads inboundReads = new InboundReads(depth);
        int side = initiator ? 0 : 1;
        PeerFiles peerFiles = new PeerFiles(peer);
        DirectOperations direct =
                new DirectOperations(new RegionTable(memory, Ring.table(1 - side, ringBytes)), peerFiles, sendRing);
        RingReader reader = new RingReader(memory, 1 - side, ringBytes);
        RingSender out = new RingSender(new RingWriter(memory, side, ringBytes), sendRing, inboundReads, direct, depth);
        int receiveSges = sharedQueue == null ? options.maxSges() : SoftwareReceiveQueue.MAX_SGES;
        RingReceiver in = new RingReceiver(reader, this, access, sendRing, out, inboundReads, receiveSges);
        Publisher publisher =
                new Publisher(context.files(), new RegionTable(memory, Ring.table(side, ringBytes)), loop, this);
        access.publishWith(publisher);
        Control control = new Control(requireSocket(), peerFiles);
        rings = new Rings(arena, reader, in, out, control, direct, peerFiles, publisher);
        state = CONNECTED;
        try {
            handler.onConnected(this, privateData);
        } catch (Throwable t) {
            fail(t);
        }
        wake();
    }

    // What the user asks.

    @Override
    public EndpointCapabilities capabilities() {
        EndpointCapabilities now = capabilities;
        if (now == null) {
            throw new IllegalStateException("the capabilities are known from onPrepared on");
        }
        return now;
    }

    @Override
    public int rendezvousBytes(int peerReceiveBytes) {
        return RENDEZVOUS_BYTES;
    }

    @Override
    public MemoryDomain memoryDomain() {
        return context.domain();
    }

    @Override
    public MemoryDomain connectionMemory() {
        return connectionMemory;
    }

    @Override
    public void allowRemoteAccess(boolean allowed) {
        connectionMemory.allow(allowed);
        Rings now = rings;
        if (!allowed && now != null) {
            now.publisher.withdrawAll();
        }
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
        WorkChecks.checkReceive(context.domain(), options.maxSges(), buffers);
        if (!prepared || state >= DRAINING || receiveRing.isFull()) {
            return false;
        }
        receiveRing.add(workId, buffers);
        return true;
    }

    @Override
    public boolean post(WorkRequest work) {
        assert loop.inEventLoop();
        WorkChecks.checkLocal(context.domain(), options.maxSges(), maxInlineBytes, work);
        if (state == CONNECTED) {
            WorkChecks.checkRemote(remoteAddress, true, true, readDepth, work);
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
        pump();
        if (!inTurn && (state == DRAINING || isHeadDone())) {
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
            ControlSocket now = socket;
            if (inTurn && now != null) {
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

    void turn() {
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

    /** Ends a turn: reports what is done, sends what was posted, and drains if the connection has ended. */
    void leaveTurn() {
        if (state == CONNECTED) {
            reports.reportSends();
            reports.endBatch();
        }
        if (state == CONNECTED) {
            pump();
        }
        if (state == DRAINING) {
            drain();
        }
        if (state == CONNECTED && isHeadDone()) {
            scheduleTurn();
        }
        inTurn = false;
    }

    /** Ends the connection now, whether in a turn or not. */
    void endNow(Throwable why) {
        inTurn = false;
        fail(why);
        turn();
    }

    /** Polled by the handler. Gives how many records there were. */
    int poll() {
        Rings now = rings;
        if (state != CONNECTED || now == null || inTurn) {
            return 0;
        }
        boolean hasMore = now.reader.hasMore();
        if (!hasMore && !now.out.hasRoomAgain()) {
            return 0;
        }
        inTurn = true;
        int records = 1;
        try {
            if (hasMore) {
                records += receive(now);
            }
            leaveTurn();
        } catch (Throwable t) {
            onFailure(t);
        }
        return records;
    }

    private int receive(Rings now) {
        progress = true;
        int records = 0;
        try {
            records = now.in.turn();
            if (now.reader.release()) {
                now.control.wakePeer();
            }
        } catch (RingException | IllegalStateException | IOException e) {
            broken("what the peer wrote", e);
        }
        return records;
    }

    private void pump() {
        Rings now = rings;
        if (now == null || !now.out.hasWork()) {
            return;
        }
        try {
            do {
                now.out.pump();
                if (now.out.publish()) {
                    now.control.wakePeer();
                }
            } while (now.out.isBlocked() && !now.out.awaitRoom());
            wake(); // an answer may come soon
            if (now.out.isPausing()) {
                scheduleTurn();
            }
        } catch (RingSender.RefusedException e) {
            access.denyClosed();
            refuse(WorkStatus.REMOTE_ACCESS_ERROR, e.request(), "a read: " + access.denial());
        } catch (RingException | IllegalStateException | IOException e) {
            broken("what this side sends", e);
        }
    }

    private void broken(String what, Exception e) {
        fail(
                e instanceof IOException
                        ? new ConnectionException.Lost("the peer " + remoteAddress + " is gone: " + e.getMessage(), e)
                        : new ConnectionException(what + " to or from " + remoteAddress + ": " + e.getMessage(), e));
    }

    private void wake() {
        Rings now = rings;
        ControlSocket with = socket;
        if (state == CONNECTED && with != null && now != null && awakeIndex < 0) {
            now.reader.setSleeping(false);
            with.io().wake(this);
        } else {
            idlePolls = 0;
        }
    }

    boolean isAwake() {
        return awakeIndex >= 0;
    }

    /** Stops to be polled: the peer has to wake it. Gives false if there is something to do already. */
    boolean fallAsleep() {
        Rings now = rings;
        if (state != CONNECTED || now == null) {
            return true;
        }
        now.reader.setSleeping(true);
        if (now.reader.hasMore() || now.out.hasRoomAgain()) {
            now.reader.setSleeping(false);
            return false;
        }
        return true;
    }

    // Events of the socket.

    @Override
    public void onReadable() throws IOException {
        if (inTurn || state >= DRAINING) {
            return;
        }
        if (state == SETUP) {
            setup.onReadable(requireSocket());
            return;
        }
        Rings now = rings;
        if (now == null) {
            return;
        }
        inTurn = true;
        Control.Events events;
        try {
            events = now.control.read();
        } catch (IOException e) {
            events = Control.Events.ENDED;
        } catch (RingException e) {
            broken("what the peer says", e);
            leaveTurn();
            return;
        }
        wake();
        if (events == Control.Events.WOKEN) {
            receive(now);
        } else {
            onEnd(now, events);
        }
        leaveTurn();
    }

    /** The peer has ended: what it wrote before still counts. */
    private void onEnd(Rings now, Control.Events how) {
        // No more than fits: a peer that goes on writing is not listened to for ever.
        int left = now.reader.mostRecords();
        int records;
        do {
            records = receive(now);
            left -= records;
        } while (state == CONNECTED && records > 0 && left > 0);
        if (state >= DRAINING) {
            return;
        }
        switch (how) {
            case DISCONNECTED -> {
                if (now.in.isUnfinished()) {
                    fail(new ConnectionException.Lost(
                            "the peer " + remoteAddress + " closed the connection in the middle of a message"));
                } else {
                    state = DRAINING;
                }
            }
            case TERMINATED -> {
                WorkStatus status = now.control.terminateStatus();
                long sequence = now.out.sequence(now.control.terminateRequest());
                if (sequence >= 0) {
                    outcome.requestFailed(sequence, status);
                }
                fail(new WorkCompletionException(
                        "an operation that the peer " + remoteAddress + " refused", status, 0));
            }
            default ->
                fail(new ConnectionException.Lost("the process of the peer " + remoteAddress
                        + " has ended, or closed the connection without a word"));
        }
    }

    @Override
    public void onTick() {
        Rings now = rings;
        if (state != CONNECTED || now == null || !now.out.isOwed() || progress) {
            progress = false;
            stalledTicks = 0;
            return;
        }
        int limit = context.options().stallTimeoutMillis();
        if (limit != 0 && ++stalledTicks * 1000L >= limit) {
            endNow(new ConnectionException.Lost("the peer " + remoteAddress + " did nothing for " + limit
                    + " ms while this side waited for " + (now.out.isBlocked() ? "room in its ring" : "an answer")
                    + " (org.verbena.shm.stallTimeoutMillis)"));
        }
    }

    @Override
    public void onFailure(Throwable thrown) {
        LOG.error("closing the connection with {} after an error in the provider", remoteAddress, thrown);
        if (!failed) {
            failed = true;
            endNow(thrown);
            return;
        }
        // It happened again in what ends the connection, which would fail without end.
        ControlSocket now = socket;
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

    // Events of the receiver.

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
    public void onReceived(Placement receive, int bytes, int flags, int word) {
        reports.reportReceive(receive, WorkStatus.SUCCESS, bytes, flags, word);
    }

    @Override
    public void onAnswered() {
        reports.reportSends();
    }

    @Override
    public void receiveTooSmall() {
        outcome.receiveTooSmall();
    }

    @Override
    public void refuse(WorkStatus status, int request, String why) {
        if (state >= DRAINING) {
            return;
        }
        lastWords = Control.terminate(status, request);
        String text = "refused " + why + "; from " + remoteAddress + ", which was told: " + status.meaning();
        LOG.warn("{}", text);
        fail(
                outcome.hasReceiveFailed()
                        ? new WorkCompletionException(
                                "receive for a message from " + remoteAddress, WorkStatus.LOCAL_LENGTH_ERROR, 0)
                        : new ConnectionException(text));
    }

    // What the publisher says.

    @Override
    public void announce(int number, int descriptor, long lengthBytes, boolean isWritable) {
        say(Control.file(number, descriptor, lengthBytes, isWritable));
    }

    @Override
    public void freed(int number) {
        say(Control.freed(number));
    }

    @Override
    public void onStuck() {
        fail(new ConnectionException.Lost("the peer " + remoteAddress
                + " has stopped in the middle of a write into memory that was closed meanwhile"));
    }

    private void say(ByteBuffer words) {
        if (state == CONNECTED) {
            try {
                requireSocket().send(words);
            } catch (IOException e) {
                broken("what this side says", e);
            }
        }
    }

    // Events of the reports.

    @Override
    public boolean isConnected() {
        return state == CONNECTED;
    }

    @Override
    public boolean isHeadDone() {
        Rings now = rings;
        return now != null && now.out.isHeadDone();
    }

    @Override
    public @Nullable Placement receiveInProgress() {
        Rings now = rings;
        return now == null ? null : now.in.receiveInProgress();
    }

    @Override
    public ConnectionOutcome outcome() {
        return outcome;
    }

    @Override
    public void countCompletion() {
        ControlSocket counting = socket;
        if (counting != null) {
            counting.io().completed();
        }
    }

    // The end.

    /** Notes why the connection ends; the end of the turn does it. The first cause counts. */
    @Override
    public void fail(Throwable why) {
        if (state < DRAINING) {
            state = DRAINING;
            outcome.setCause(why);
            if (!inTurn) {
                scheduleTurn();
            }
        }
    }

    private void drain() {
        setup.end();
        setup.unbind();
        leaveSocket();
        Rings ended = rings;
        reports.reportRest();
        reports.endBatch();
        state = CLOSED;
        if (ended != null) {
            rings = null;
            ended.close();
        }
        try {
            handler.onDisconnected(this, outcome.cause());
        } catch (Throwable t) {
            LOG.warn("the handler of {} threw at the end of its connection", this, t);
        }
    }

    /** Tells the peer how it ends, as far as possible, and closes the socket. */
    private void leaveSocket() {
        ControlSocket now = socket;
        if (now == null || now.isClosed()) {
            return;
        }
        now.io().removeAwake(this);
        try {
            if (rings != null) {
                ByteBuffer words = lastWords;
                if (words != null) {
                    now.send(words);
                } else if (outcome.cause() == null) {
                    now.send(Control.disconnect());
                }
            } else if (setup.isAccepting()) {
                // Accepted, but not answered: this side cannot do it after all.
                now.send(setup.rejection(rejection()));
            }
        } catch (IOException e) {
            LOG.debug("the last words to {}: {}", remoteAddress, e.toString());
        }
        now.closeNow();
    }

    private byte[] rejection() {
        try {
            return handler.rejection(this);
        } catch (Throwable t) {
            LOG.warn("the handler of {} threw when asked for a rejection", this, t);
            return new byte[0];
        }
    }

    private ControlSocket requireSocket() {
        ControlSocket now = socket;
        if (now == null) {
            throw new IllegalStateException("no socket yet");
        }
        return now;
    }

    @Override
    public String toString() {
        return "shm endpoint " + localAddress + (initiator ? " -> " : " <- ") + remoteAddress;
    }
}
