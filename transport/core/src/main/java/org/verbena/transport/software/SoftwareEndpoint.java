package org.verbena.transport.software;

import io.netty.channel.IoEventLoop;
import java.lang.foreign.MemorySegment;
import java.net.InetSocketAddress;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.EndpointCapabilities;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.WorkCompletionException;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.PeerGroup;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.SharedReceiveQueue;
import org.verbena.transport.spi.WorkRequest;

/**
 * One connection of a provider that is its own device: queues, turns and the end. A subclass has the transport to the
 * peer.
 *
 * <p>Everything happens in turns: something has come from the peer, more can go to it, or a task runs. Within a turn
 * the handler is called as events are found, and what it posts meanwhile is sent together at the end of the turn.
 * Outside a turn, in a method that the user called, there are no callbacks: completions wait for the next turn, which a
 * task provides.
 *
 * <pre>{@code
 * COMING_UP --becomeConnected--> CONNECTED --disconnect, error, peer--> DRAINING --> CLOSED
 *     |                                                                    ^
 *     +--------------------------------------------------------------------+
 * }</pre>
 */
public abstract class SoftwareEndpoint implements Endpoint, CompletionReports.Owner {
    private static final Logger LOG = LoggerFactory.getLogger(SoftwareEndpoint.class);

    /** The most that an inline request carries: beyond it a copy costs more than holding the memory. */
    public static final int MAX_INLINE_BYTES = 4096;

    /** Suits thousands of connections, most of them idle: each keeps several of these buffers for itself. */
    private static final int SHARED_RECEIVE_BUFFER_BYTES = 16 << 10;

    private enum State {
        COMING_UP,
        CONNECTED,
        DRAINING,
        CLOSED
    }

    protected final IoEventLoop loop;
    protected final SoftwareDomain domain;
    protected final ConnectionMemory connectionMemory;
    protected final EndpointOptions options;
    protected final EndpointHandler handler;
    protected final InetSocketAddress remoteAddress;
    protected final boolean initiator;
    protected final SendRing sendRing;
    protected final CompletionReports reports;
    private final int maxInlineBytes;
    private final WorkRing receiveRing;
    private final Runnable turnTask = this::turn;

    private State state = State.COMING_UP;
    private boolean prepared;
    private boolean inTurn;
    private boolean turnScheduled;
    private boolean takesNewestReceive;

    /** Messages since what was posted went to the peer. */
    private int batchMessages;

    /** An unexpected throwable was caught, and the connection is being ended for it. */
    private boolean failed;

    private int readDepth;
    private @Nullable InetSocketAddress localAddress;
    private @Nullable SoftwareReceiveQueue sharedQueue;
    private @Nullable EndpointCapabilities capabilities;

    @SuppressWarnings("this-escape") // the reports only keep it
    protected SoftwareEndpoint(
            IoEventLoop loop,
            SoftwareDomain domain,
            EndpointOptions options,
            EndpointHandler handler,
            InetSocketAddress remoteAddress,
            boolean initiator) {
        this.loop = loop;
        this.domain = domain;
        this.options = options;
        this.handler = handler;
        this.remoteAddress = remoteAddress;
        this.initiator = initiator;
        connectionMemory = new ConnectionMemory(domain);
        maxInlineBytes = Math.min(options.maxInlineBytes(), MAX_INLINE_BYTES);
        sendRing = new SendRing(options.sendDepth(), options.maxSges(), maxInlineBytes);
        // With shared receives it stays empty.
        receiveRing = new WorkRing(options.sharedReceiveQueue() ? 1 : options.receiveDepth(), options.maxSges());
        reports = new CompletionReports(this, handler, sendRing, receiveRing);
    }

    // The transport to the peer.

    /** Sends what was posted and what the peer is owed, as far as it goes; not if that has to wait for the peer. */
    protected abstract void pump();

    /** The handler of the loop that polls for this connection; null if none does yet, or any more. */
    protected abstract @Nullable SoftwareIoHandler io();

    /** Reports the end to the peer, as far as possible, and releases the socket. */
    protected abstract void leavePeer();

    /** Everything is reported: releases what the connection had. */
    protected abstract void release();

    /** An error in the provider: nothing more is sent to the peer. */
    protected abstract void distrust();

    /** Closes the socket, whatever state this is in. */
    protected abstract void closeSocketNow();

    /** The default size of receives that are not shared. */
    protected abstract int receiveBufferBytes();

    /**
     * After how many messages within a turn the work posted meanwhile is sent, so that both ends work at the same time:
     * if everything under way is answered together, one end waits for the other. Each time costs a send.
     */
    protected abstract int mostBatchMessages();

    /** Whether the peer takes immediate data. */
    protected abstract boolean takesImmediateData();

    /** Whether the peer does atomics. */
    protected abstract boolean doesAtomics();

    // Coming up.

    /** Whether it is not decided yet whether there will be a connection. */
    public final boolean isComingUp() {
        return state == State.COMING_UP;
    }

    /** Whether the handler has been asked to prepare. */
    protected final boolean isPrepared() {
        return prepared;
    }

    /**
     * The peer is reached: what is posted may be prepared.
     *
     * @param local this side's address
     * @param shared the loop's receives, if this endpoint is to use them
     * @return whether to go on
     */
    protected final boolean prepare(InetSocketAddress local, @Nullable SoftwareReceiveQueue shared) {
        localAddress = local;
        sharedQueue = shared;
        capabilities = capabilities(options.readDepth());
        prepared = true;
        try {
            handler.onPrepared(this);
        } catch (Throwable t) {
            fail(t);
        }
        return isComingUp();
    }

    private EndpointCapabilities capabilities(int depth) {
        SoftwareReceiveQueue shared = sharedQueue;
        return EndpointCapabilities.MINIMAL.with(o -> {
            o.sendDepth = options.sendDepth();
            o.receiveDepth = shared == null ? options.receiveDepth() : shared.depth();
            o.maxSges = options.maxSges();
            o.maxReceiveSges = options.maxSges();
            o.maxReadSges = options.maxSges();
            o.maxInlineBytes = maxInlineBytes;
            o.readDepth = depth;
            o.maxMessageBytes = Integer.MAX_VALUE;
            o.atomics = doesAtomics() && depth > 0;
            o.immediateData = takesImmediateData();
            o.sendWithInvalidate = true;
            o.receiveBufferBytes = shared == null ? receiveBufferBytes() : SHARED_RECEIVE_BUFFER_BYTES;
            o.connectionMemory = true;
            o.groupMemory = true;
        });
    }

    /**
     * Reports the connection as established to its user.
     *
     * @param depth reads and atomics that may be out
     * @param privateData of the peer
     */
    protected final void becomeConnected(int depth, byte[] privateData) {
        readDepth = depth;
        state = State.CONNECTED;
        capabilities = capabilities(depth);
        try {
            handler.onConnected(this, privateData);
        } catch (Throwable t) {
            fail(t);
        }
    }

    // Calls of the user.

    @Override
    public final EndpointCapabilities capabilities() {
        return known(capabilities, "capabilities are known");
    }

    @Override
    public final InetSocketAddress localAddress() {
        return known(localAddress, "the local address is known");
    }

    private static <T> T known(@Nullable T value, String what) {
        if (value == null) {
            throw new IllegalStateException(what + " from onPrepared on");
        }
        return value;
    }

    @Override
    public final InetSocketAddress remoteAddress() {
        return remoteAddress;
    }

    @Override
    public final MemoryDomain memoryDomain() {
        return domain;
    }

    @Override
    public final MemoryDomain connectionMemory() {
        return connectionMemory;
    }

    @Override
    public final MemoryDomain join(PeerGroup group) {
        return connectionMemory.join(group);
    }

    @Override
    public void allowRemoteAccess(boolean allowed) {
        connectionMemory.allow(allowed);
    }

    @Override
    public final @Nullable SharedReceiveQueue sharedReceiveQueue() {
        return sharedQueue;
    }

    @Override
    public final boolean postReceive(long workId, ScatterGatherList buffers) {
        assert loop.inEventLoop();
        if (sharedQueue != null) {
            throw new UnsupportedOperationException("receives of this endpoint are posted to its shared receive queue");
        }
        WorkChecks.checkReceive(domain, options.maxSges(), buffers);
        if (!prepared || !isOpen() || receiveRing.isFull()) {
            return false;
        }
        receiveRing.add(workId, buffers);
        return true;
    }

    @Override
    public final void takeReceivesInAnyOrder() {
        takesNewestReceive = true;
    }

    @Override
    public final boolean post(WorkRequest work) {
        assert loop.inEventLoop();
        WorkChecks.checkLocal(domain, options.maxSges(), maxInlineBytes, work);
        if (state == State.CONNECTED) {
            WorkChecks.checkRemote(remoteAddress, takesImmediateData(), doesAtomics(), readDepth, work);
        }
        if (state != State.CONNECTED || sendRing.isFull()) {
            return false;
        }
        sendRing.add(work);
        return true;
    }

    @Override
    public final int freeSendSlots() {
        return state == State.CONNECTED ? sendRing.depth() - sendRing.size() : 0;
    }

    @Override
    public final void flush() {
        assert loop.inEventLoop();
        if (state != State.CONNECTED) {
            return;
        }
        pump();
        if (!inTurn && (state == State.DRAINING || isHeadDone())) {
            scheduleTurn();
        }
    }

    @Override
    public final void disconnect() {
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
        if (!isOpen()) {
            return;
        }
        if (isComingUp()) {
            fail(new ConnectionException(
                    "connecting with " + remoteAddress + ": closed by this side before it was established"));
        } else {
            endInOrder();
        }
        if (!inTurn) {
            scheduleTurn();
        }
    }

    @Override
    public final void countCompletion() {
        SoftwareIoHandler io = io();
        if (io != null) {
            io.completed();
        }
    }

    // Turns.

    /** Schedules a turn. */
    protected final void scheduleTurn() {
        if (turnScheduled) {
            return;
        }
        turnScheduled = true;
        SoftwareIoHandler io = inTurn ? io() : null;
        if (io != null) { // Netty may run tasks for up to a second without polling
            io.runAfterPoll(turnTask);
            return;
        }
        try {
            loop.execute(turnTask);
        } catch (RejectedExecutionException e) {
            // The loop is ending; onLoopEnding does the rest.
            turnScheduled = false;
            LOG.debug("no more processing for {}", this, e);
        } catch (Error noMemory) {
            SoftwareIoHandler later = io();
            if (later == null) {
                turnScheduled = false;
                throw noMemory;
            }
            later.runAfterPoll(turnTask);
        }
    }

    /** Runs a turn for what was posted or ended before. */
    public final void turn() {
        turnScheduled = false;
        if (inTurn || state == State.CLOSED) {
            return;
        }
        inTurn = true;
        try {
            leaveTurn();
        } catch (Throwable t) {
            onFailure(t);
        }
    }

    protected final boolean isInTurn() {
        return inTurn;
    }

    public final void beginTurn() {
        inTurn = true;
    }

    /** Ends a turn: reports what is done, sends what was posted, and drains if the connection has ended. */
    public final void leaveTurn() {
        endBatch();
        if (state == State.DRAINING) {
            drain();
        }
        if (state == State.CONNECTED && isHeadDone()) {
            scheduleTurn();
        }
        inTurn = false;
    }

    // Events of the transport.

    /** Whether the connection has not ended. */
    public final boolean isOpen() {
        return state == State.COMING_UP || state == State.CONNECTED;
    }

    /** Moves the oldest receive, or the newest where the order does not matter, into a placement; false if none is. */
    public final boolean takeReceive(Placement into) {
        SoftwareReceiveQueue shared = sharedQueue;
        WorkRing ring = shared == null ? receiveRing : shared.ring();
        if (ring.isEmpty()) {
            return false;
        }
        if (takesNewestReceive || shared != null) {
            ring.moveTailTo(into);
        } else {
            ring.moveHeadTo(into);
        }
        return true;
    }

    /** The receive that a message goes to is too small for it. */
    public final void receiveTooSmall() {
        outcome().receiveTooSmall();
    }

    /**
     * A message lies whole in memory that is valid during the call, and may be the peer's.
     *
     * @return false if it goes into a receive
     */
    public final boolean onMessage(MemorySegment memory, long offsetBytes, int lengthBytes) {
        if (state != State.CONNECTED || !reports.offerMessage(memory, offsetBytes, lengthBytes)) {
            return false;
        }
        messageTaken();
        return true;
    }

    /** A message has been placed. */
    public final void onReceived(Placement receive, int bytes, int flags, int word) {
        reports.reportReceive(receive, WorkStatus.SUCCESS, bytes, flags, word);
        messageTaken();
    }

    private void messageTaken() {
        if (++batchMessages >= mostBatchMessages()) {
            endBatch();
        }
    }

    /** Reports what is done, and sends what was posted. */
    private void endBatch() {
        batchMessages = 0;
        if (state == State.CONNECTED) {
            reports.reportSends();
            reports.endBatch();
        }
        if (state == State.CONNECTED) {
            pump();
        }
    }

    /** The answer to a read or an atomic of this side is complete. */
    public final void onAnswered() {
        reports.reportSends();
    }

    /**
     * The cause of the end of a connection whose peer did what it must not.
     *
     * @param text what that was
     * @return the cause
     */
    protected final Throwable refusal(String text) {
        return outcome().hasReceiveFailed()
                ? new WorkCompletionException(
                        "receive for a message from " + remoteAddress, WorkStatus.LOCAL_LENGTH_ERROR, 0)
                : new ConnectionException(text);
    }

    @Override
    public final boolean isConnected() {
        return state == State.CONNECTED;
    }

    // The end.

    /** Ends the connection without a cause; the end of the turn does it. */
    protected final void endInOrder() {
        state = State.DRAINING;
    }

    /** The peer has closed the connection; false while a message was not complete. */
    protected final void endWithPeer(boolean inOrder) {
        if (inOrder) {
            endInOrder();
        } else {
            fail(new ConnectionException.Lost(
                    "the peer " + remoteAddress + " closed the connection in the middle of a message"));
        }
    }

    /** Notes why the connection ends; the end of the turn does it. The first cause counts. */
    @Override
    public final void fail(Throwable why) {
        if (isOpen()) {
            state = State.DRAINING;
            outcome().setCause(why);
            if (!inTurn) {
                scheduleTurn();
            }
        }
    }

    /** Ends the connection now, whether in a turn or not. */
    public final void endNow(Throwable why) {
        inTurn = false;
        fail(why);
        turn();
    }

    /**
     * As a task of the loop that sets the connection up: whatever it throws ends the connection, since nobody else
     * would report it.
     *
     * @param step to run
     * @return what runs it
     */
    public final Runnable guarded(Runnable step) {
        return () -> {
            try {
                step.run();
            } catch (Throwable t) {
                endNow(setupFailure(t));
            }
        };
    }

    /** The cause of a connection that did not come up. */
    public final ConnectionException setupFailure(Throwable why) {
        return new ConnectionException(
                (initiator ? "connecting to " : "accepting from ") + remoteAddress + ": " + why(why), why);
    }

    /** What it says about itself: that of an Error may be nothing. */
    static String why(Throwable thrown) {
        return thrown instanceof Error ? thrown.toString() : String.valueOf(thrown.getMessage());
    }

    /** Handles an unexpected throwable. */
    public final void onFailure(Throwable thrown) {
        LOG.error("closing the connection with {} after an error in the provider", remoteAddress, thrown);
        distrust();
        if (failed) {
            // Ending the connection failed as well, and trying again would never stop.
            closeSocketNow();
            if (state != State.CLOSED) {
                becomeClosed();
            }
            return;
        }
        failed = true;
        endNow(thrown);
    }

    /** The event loop ends. */
    public final void onLoopEnding() {
        if (isComingUp()) {
            fail(new ConnectionException("setting up with " + remoteAddress + ": the event loop was shut down"));
        } else if (state == State.CONNECTED) {
            endInOrder();
        }
        turn();
    }

    private void drain() {
        leavePeer();
        reports.reportRest();
        reports.endBatch();
        becomeClosed();
    }

    /** Whatever fails here, the handler is called. */
    private void becomeClosed() {
        state = State.CLOSED;
        try {
            release();
        } catch (Throwable t) {
            LOG.error("releasing what the connection with {} had", remoteAddress, t);
        }
        try {
            handler.onDisconnected(this, outcome().cause());
        } catch (Throwable t) {
            LOG.warn("the handler of {} threw at the end of its connection", this, t);
        }
    }

    /** The reason that a peer gets whose request was accepted, and that cannot be served. */
    protected final byte[] rejection() {
        try {
            return handler.rejection(this);
        } catch (Throwable t) {
            LOG.warn("the handler of {} threw when asked for a rejection", this, t);
            return new byte[0];
        }
    }

    /** Its addresses, for logs. */
    protected final String describe(String provider) {
        return provider + " endpoint " + localAddress + (initiator ? " -> " : " <- ") + remoteAddress;
    }
}
