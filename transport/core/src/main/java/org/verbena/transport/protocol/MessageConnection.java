package org.verbena.transport.protocol;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.CompositeByteBuf;
import io.netty.util.ReferenceCounted;
import java.util.ArrayDeque;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.buffer.OperationRegistration;
import org.verbena.transport.spi.ConnectionException;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointCapabilities;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.MemoryDomain;
import org.verbena.transport.spi.RdmaException;
import org.verbena.transport.spi.RegisteredMemory;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.WorkCompletionException;
import org.verbena.transport.spi.WorkRequest;
import org.verbena.transport.spi.WorkStatus;

/**
 * The message protocol over one endpoint: give it to {@code RdmaProvider.connect} or {@code IncomingConnection.accept} as the handler, with
 * {@link #privateData(MessageOptions)} in the endpoint's options. It does no I/O, has no thread and decides nothing by a clock of its own: it
 * calls the endpoint and its listener, and is called on the endpoint's loop alone.
 *
 * <p>Operations are queued in the order given and go to the device in that order at {@link #flush()} at the latest; what the peer's credits, the
 * send queue or the read depth do not let go waits, goes on by itself, and never fails for it. Each operation's callback is called exactly once,
 * messages' in the order sent.
 */
public final class MessageConnection implements EndpointHandler, MessageBuffers.Waiter {

    /** Who speaks first. */
    public enum Role {
        /** Called connect: says HELLO. */
        INITIATOR,
        /** Accepted: answers. */
        ACCEPTOR
    }

    /** A fragment that is not the last fills at least this part of the peer's receive buffer, so that it cannot be made to hold many for little. */
    private static final int MIN_FRAGMENT_DIVISOR = 4;
    /** Writes of a stream that together are not longer than this are copied into one piece: that costs less than a piece each. */
    private static final int COALESCED_BYTES = 2048;
    /** A write of a stream that is no longer than this may be the header of the next one. */
    private static final int HEADER_WRITE_BYTES = 64;
    /** A view of a composite of more pieces than these is copied. */
    private static final int MAX_VIEWED_PIECES = 4;
    /** The longest stretch of a stream that is advertised at once, which the receiver needs memory for in one piece. */
    private static final int STREAM_RENDEZVOUS_BYTES = 1 << 20;
    /** What {@link #nextDeadlineNanos()} is when nothing is due at any time. */
    public static final long NO_DEADLINE = Deadlines.NONE;

    // What keeps an operation from being posted.
    private static final int NOTHING = 0;
    private static final int CREDIT = 1;
    private static final int SLOT = 2;
    private static final int MEMORY = 3;

    private static final Set<MemoryDomain.Access> REMOTE_READ = Set.of(MemoryDomain.Access.REMOTE_READ);

    private enum State {
        /** No connection yet. */
        CONNECTING,
        /** Connected; HELLO or its answer is awaited. */
        HANDSHAKE,
        /** Both ends agreed. */
        ACTIVE,
        /** Disconnected, with messages that nobody has read yet. */
        LINGERING,
        /** Over. */
        INACTIVE
    }

    private final Role role;
    private final MessageOptions options;
    private final MessageBuffers.Source source;
    private final MessageListener listener;
    private final boolean raw;
    private final boolean stream;
    private final Credits credits = new Credits();
    private final ConnectionCounters counters = new ConnectionCounters();
    private final Outbox outbox = new Outbox(counters, this::threw);
    private final SendLedger ledger;
    private final ReceiveWindow window;
    private final Inbox inbox;
    private final RendezvousReceiver rendezvous;
    private final Deadlines deadlines;

    private State state = State.CONNECTING;
    private boolean prepared;
    private boolean connected;
    private boolean aborted;
    /** Disconnected: nothing is taken any more. */
    private boolean over;

    private boolean closeRequested;
    private boolean closeSent;
    private boolean closeAnswered;
    private boolean peerClosed;
    /** STREAM: this end's half is closed, or will be when what was sent before has gone. */
    private boolean outputEnded;
    /** STREAM: the peer's half is closed. */
    private boolean peerEnded;

    private @Nullable Throwable firstCause;
    private @Nullable Throwable lingeringCause;

    /** Within a batch of completions, whose end pumps. */
    private boolean inBatch;
    /** Within something that pumps when it is done, or within the pump. */
    private boolean busy;

    private boolean pumpAgain;

    // Set by onPrepared, before anything that reads them.
    private @Nullable Endpoint endpoint;

    @SuppressWarnings("NullAway.Init")
    private EndpointCapabilities capabilities;

    @SuppressWarnings("NullAway.Init")
    private MessageBuffers buffers;

    @SuppressWarnings("NullAway.Init")
    private WorkRequest request;

    /** The peer has asked for grants. */
    private boolean returnDue;

    // Operations.
    /** The end is still to be told, after all outcomes. */
    private boolean endDue;

    private @Nullable Throwable endCause;
    /** What a callback has thrown and whoever called is still to be given. */
    private @Nullable Error thrown;

    private boolean writable;
    private int stall;
    /** For want of grants, since the last frame. */
    private boolean waited;

    // Outbound rendezvous.
    private final ArrayDeque<Operation> advertised = new ArrayDeque<>();
    private final ScatterGatherList advertisement = new ScatterGatherList(Wire.MAX_PIECES);
    private int rendezvousThresholdBytes;
    private int maxRendezvousOut;
    private int rendezvousDoneByPeer;
    private int rendezvousAdvertised;

    // Inbound.

    private volatile boolean resumable;

    // What was agreed.
    private boolean helloDue;
    private Wire.@Nullable Hello peerHello;
    private @Nullable Negotiated negotiated;
    private int peerPayloadBytes;
    private int maxOutboundBytes = Integer.MAX_VALUE;
    /** What the peer was promised; 0 before it was. */
    private int maxInboundBytes;

    private int peerFeatures;

    // Signs of life.
    private boolean heard;
    private boolean pingDue;
    private boolean pingOut;
    private boolean pingForKeepAlive;
    private long pingNonce;
    private boolean pongDue;
    private long pongNonce;

    // For whoever watches.
    private FlightEvents.@Nullable Connect connectEvent;
    private FlightEvents.@Nullable CreditStall stallEvent;
    private long stalledSinceNanos;
    private int failedOperations;
    private Frame.@Nullable Listener frameListener;

    /**
     * Makes one, for one endpoint.
     *
     * @param role who speaks first
     * @param options how this end speaks
     * @param buffers where registered memory comes from
     * @param listener hears everything
     */
    public MessageConnection(
            Role role, MessageOptions options, MessageBuffers.Source buffers, MessageListener listener) {
        this(role, options, buffers, listener, System::nanoTime);
    }

    /** With a clock for tests. */
    MessageConnection(
            Role role,
            MessageOptions options,
            MessageBuffers.Source buffers,
            MessageListener listener,
            LongSupplier nanoClock) {
        this.role = role;
        this.options = options;
        this.source = buffers;
        this.listener = listener;
        raw = options.framing() == Framing.RAW;
        stream = options.framing() == Framing.STREAM;
        ledger = new SendLedger(options.maxInlineBytes(), counters);
        window = new ReceiveWindow(options, credits, counters, this);
        inbox = new Inbox(this, listener, window, counters, stream, this::isDeliverable, this::threw);
        deadlines = new Deadlines(options, nanoClock);
        rendezvous = new RendezvousReceiver(this, options, inbox, ledger, counters, deadlines);
        connectEvent = FlightEvents.beginConnect();
    }

    /**
     * What goes with a connect request or its acceptance as private data, so that the other end knows who it talks to.
     *
     * @param options how this end speaks
     * @return empty for RAW
     */
    public static byte[] privateData(MessageOptions options) {
        return Wire.preamble(options.framing());
    }

    /**
     * Whether a connect request is from a stranger. Accept if null, else {@code IncomingConnection.reject} with the answer.
     *
     * @param options how this end speaks
     * @param privateData what came with the request
     * @return null for a peer that speaks the same; else the reason as private data for the rejection
     */
    public static byte @Nullable [] rejection(MessageOptions options, byte[] privateData) {
        String strangeness = Wire.strangeness(options.framing(), privateData);
        return strangeness == null ? null : Wire.rejection(strangeness);
    }

    /**
     * What a peer said in a rejection.
     *
     * @param privateData of {@code ConnectionException.Rejected}
     * @return words, or null if there are none of ours
     */
    public static @Nullable String rejectionReason(byte[] privateData) {
        return Wire.rejectionReason(privateData);
    }

    /**
     * The endpoint.
     *
     * @return null before the listener's {@code onPrepared}
     */
    public @Nullable Endpoint endpoint() {
        return endpoint;
    }

    /**
     * Has each frame told to someone, for debugging.
     *
     * @param value hears of each frame from now on, on the loop; null for nobody
     */
    public void setFrameListener(Frame.@Nullable Listener value) {
        frameListener = value;
    }

    /** Whether the endpoint's addresses are known. */
    boolean isPrepared() {
        return prepared;
    }

    /**
     * What was agreed.
     *
     * @return null before the listener's {@code onActive}
     */
    public @Nullable Negotiated negotiated() {
        return negotiated;
    }

    /**
     * Queues a message; with STREAM framing, bytes of any number. It may be called before {@code onActive}. A message beyond the peer's limit fails
     * with {@link MessageTooLargeException}, on a connection that is over with its cause. Success means that the peer's adapter has it all (verbs) or that it was handed to TCP (soft); it is
     * never a sign that the peer's program has seen it. Messages that go by rendezvous have arrived in the peer's memory.
     *
     * @param message from its reader index to its writer index; ownership is taken, also when it fails
     * @param callback hears the outcome
     * @param context given to the callback
     */
    public void send(ByteBuf message, OperationCallback callback, @Nullable Object context) {
        Operation operation = outbox.newOperation(Operation.Kind.MESSAGE, callback, context);
        operation.message = message;
        operation.index = message.readerIndex();
        operation.totalBytes = message.readableBytes();
        operation.remainingBytes = operation.totalBytes;
        boolean tooLarge = !stream && operation.totalBytes > maxOutboundBytes;
        enqueueMessage(operation, tooLarge ? tooLarge(operation) : null);
    }

    /**
     * Closes this end's half of a stream: what was sent before goes out, then the peer hears {@code onEnd}. What is sent later fails. Reading goes on.
     *
     * @param callback hears the outcome, after those of everything that was sent before
     * @param context given to the callback
     * @throws UnsupportedOperationException the framing is not STREAM
     */
    public void shutdownOutput(OperationCallback callback, @Nullable Object context) {
        if (!stream) {
            throw new UnsupportedOperationException("half close needs framing STREAM, not " + options.framing());
        }
        Operation operation = outbox.newOperation(Operation.Kind.MESSAGE, callback, context);
        operation.end = true;
        operation.totalBytes = 0;
        operation.remainingBytes = 0;
        enqueueMessage(operation, null);
        outputEnded = true;
        flush();
    }

    private void enqueueMessage(Operation operation, @Nullable Throwable otherRefusal) {
        outbox.addMessage(operation);
        Throwable refusal = refusal(operation);
        if (refusal == null) {
            refusal = otherRefusal;
        }
        if (refusal == null) {
            outbox.enqueue(operation);
        } else {
            operation.failure = refusal;
            operation.posted = true;
            operation.done = true;
            outbox.completeMessages();
            settle(false);
        }
    }

    /**
     * Queues a read of the peer's memory. More pieces than one work request can scatter to are read by several.
     *
     * @param remoteAddress where, in the peer's memory
     * @param remoteKey the peer's key for it
     * @param local where to, read during the call only; the regions are held until the outcome
     * @param hold released with the outcome, for example the buffer behind the pieces; null for nothing. Taken also when this throws
     * @param callback hears the outcome
     * @param context given to the callback
     * @throws IllegalArgumentException a region without LOCAL_WRITE, or without REMOTE_WRITE where the adapter asks for it
     */
    public void read(
            long remoteAddress,
            int remoteKey,
            ScatterGatherList local,
            @Nullable ReferenceCounted hold,
            OperationCallback callback,
            @Nullable Object context) {
        checkSinks(local, hold);
        enqueueOneSided(
                newOneSided(Operation.Kind.READ, remoteAddress, remoteKey, 0, 0, 0, local, hold, callback, context));
    }

    /**
     * Queues a write into the peer's memory. Success does not mean that the peer's program can see it: only what is sent after it tells.
     *
     * @param remoteAddress where, in the peer's memory
     * @param remoteKey the peer's key for it
     * @param local where from, read during the call only; the regions are held until the outcome
     * @param hold released with the outcome; null for nothing. Taken also when this throws
     * @param callback hears the outcome
     * @param context given to the callback
     */
    public void write(
            long remoteAddress,
            int remoteKey,
            ScatterGatherList local,
            @Nullable ReferenceCounted hold,
            OperationCallback callback,
            @Nullable Object context) {
        enqueueOneSided(
                newOneSided(Operation.Kind.WRITE, remoteAddress, remoteKey, 0, 0, 0, local, hold, callback, context));
    }

    /**
     * Queues a write that tells the peer, with 32 bits, in order with messages. Takes a credit like a message.
     *
     * @param remoteAddress where, in the peer's memory
     * @param remoteKey the peer's key for it
     * @param immediateData for the peer's {@code onImmediate}
     * @param local where from, read during the call only; the regions are held until the outcome
     * @param hold released with the outcome; null for nothing. Taken also when this throws
     * @param callback hears the outcome
     * @param context given to the callback
     * @throws UnsupportedOperationException the device or the peer has no immediate data
     */
    public void writeWithImmediate(
            long remoteAddress,
            int remoteKey,
            int immediateData,
            ScatterGatherList local,
            @Nullable ReferenceCounted hold,
            OperationCallback callback,
            @Nullable Object context) {
        if (state == State.ACTIVE && !hasImmediate()) {
            throw missing("writes with immediate data", hold);
        }
        enqueueOneSided(newOneSided(
                Operation.Kind.WRITE_WITH_IMMEDIATE,
                remoteAddress,
                remoteKey,
                immediateData,
                0,
                0,
                local,
                hold,
                callback,
                context));
    }

    /**
     * Queues an atomic compare-and-swap of 8 bytes.
     *
     * @param remoteAddress where, in the peer's memory; a multiple of 8
     * @param remoteKey the peer's key for it
     * @param expected swap only if the old value equals this
     * @param value the new value
     * @param local one piece of 8 bytes for the old value, in host order; read during the call only
     * @param hold released with the outcome; null for nothing. Taken also when this throws
     * @param callback hears the outcome
     * @param context given to the callback
     * @throws UnsupportedOperationException the device or the peer has no atomics
     */
    public void compareAndSwap(
            long remoteAddress,
            int remoteKey,
            long expected,
            long value,
            ScatterGatherList local,
            @Nullable ReferenceCounted hold,
            OperationCallback callback,
            @Nullable Object context) {
        checkAtomic(remoteAddress, local, hold);
        enqueueOneSided(newOneSided(
                Operation.Kind.COMPARE_AND_SWAP,
                remoteAddress,
                remoteKey,
                0,
                expected,
                value,
                local,
                hold,
                callback,
                context));
    }

    /**
     * Queues an atomic add to 8 bytes.
     *
     * @param remoteAddress where, in the peer's memory; a multiple of 8
     * @param remoteKey the peer's key for it
     * @param add what to add; wraps
     * @param local one piece of 8 bytes for the old value, in host order; read during the call only
     * @param hold released with the outcome; null for nothing. Taken also when this throws
     * @param callback hears the outcome
     * @param context given to the callback
     * @throws UnsupportedOperationException the device or the peer has no atomics
     */
    public void fetchAndAdd(
            long remoteAddress,
            int remoteKey,
            long add,
            ScatterGatherList local,
            @Nullable ReferenceCounted hold,
            OperationCallback callback,
            @Nullable Object context) {
        checkAtomic(remoteAddress, local, hold);
        enqueueOneSided(newOneSided(
                Operation.Kind.FETCH_AND_ADD, remoteAddress, remoteKey, 0, add, 0, local, hold, callback, context));
    }

    /**
     * Sends what is queued, as far as it can go, with one call to the device. From within a callback it takes effect when the batch of completions is
     * over. Work goes on by itself when credits and slots come back.
     */
    public void flush() {
        settle(true);
    }

    /**
     * Whether what is sent next goes out at once.
     *
     * @return false before {@code onActive}, while operations wait for credits or slots, and once closed
     */
    public boolean isWritable() {
        return writable;
    }

    /**
     * Messages that were queued and have no outcome yet.
     *
     * @return the sum of their bytes
     */
    public long queuedBytes() {
        return outbox.queuedBytes();
    }

    /**
     * Stops or resumes the delivery of messages; on at first. While it is off nothing is posted for further messages, so the peer runs out of credits
     * and stops. May be called from {@code onMessage}, and then no further message is delivered.
     *
     * @param reading whether to deliver
     * @return whether messages are waiting to be delivered: then {@link #deliverPending()} is to be called soon, from a task of the loop
     */
    public boolean setReading(boolean reading) {
        inbox.setReading(reading);
        if (reading && state == State.ACTIVE) {
            flush();
        }
        return reading && inbox.hasReady();
    }

    /** Delivers messages that came while reading was off, then {@code onReadComplete}. Does nothing while it is off, or within a callback. */
    public void deliverPending() {
        if (busy || inBatch) {
            return;
        }
        busy = true;
        try {
            inbox.deliverReady();
            inbox.readComplete();
        } catch (Throwable e) {
            threw(e);
        } finally {
            busy = false;
        }
        if (state == State.LINGERING && !inbox.hasReady()) {
            becomeInactive(lingeringCause);
        }
        settle(true);
    }

    /**
     * Asks the peer for a sign of life; {@code onPong} follows. It passes queued messages and needs none of their credits.
     *
     * @param nonce comes back with the answer
     * @return false if an earlier ping is unanswered, or the connection is not active, or RAW: nothing is sent
     */
    public boolean ping(long nonce) {
        if (state != State.ACTIVE || raw || isClosing() || pingDue || pingOut) {
            return false;
        }
        pingDue = true;
        pingForKeepAlive = false;
        pingNonce = nonce;
        flush();
        return true;
    }

    /**
     * Closes in good order: what is queued is sent, then CLOSE; when the peer has answered, the connection is let go and {@code onInactive(null)} follows. What is
     * sent later fails. Idempotent.
     */
    public void close() {
        if (closeRequested || aborted || state == State.INACTIVE) {
            return;
        }
        closeRequested = true;
        inbox.discard();
        if (state == State.LINGERING) {
            becomeInactive(lingeringCause);
            settle(false);
        } else if (state == State.ACTIVE) {
            flush();
        } else {
            abort(null);
        }
    }

    /**
     * Ends it now. What is queued or under way fails with this cause when the device has let go of it; {@code onInactive} follows. Idempotent.
     *
     * @param cause told to everything that is pending; null for a plain close
     */
    public void abort(@Nullable Throwable cause) {
        if (state == State.INACTIVE) {
            return;
        }
        if (state == State.LINGERING) {
            becomeInactive(cause);
            settle(false);
            return;
        }
        if (!aborted) {
            aborted = true;
            if (firstCause == null) {
                firstCause = cause;
            }
        }
        Endpoint current = endpoint;
        if (current != null) {
            current.disconnect();
        }
    }

    /**
     * When the connection wants {@link #onDeadline} to be called: for the timeouts of handshake and close, and for keepalive. An idle connection without
     * keepalive has no deadline. {@link MessageListener#onDeadline} tells when it gets nearer.
     *
     * @return a time of {@link System#nanoTime()}, or {@link #NO_DEADLINE}
     */
    public long nextDeadlineNanos() {
        if (aborted || over || !connected || state == State.INACTIVE || state == State.LINGERING) {
            return NO_DEADLINE;
        }
        return deadlines.next(state == State.HANDSHAKE, isClosing(), pingOut || pingDue);
    }

    /**
     * Tells the time: call it when {@link #nextDeadlineNanos()} has come. Too early does no harm.
     *
     * @param nowNanos {@link System#nanoTime()}
     */
    public void onDeadline(long nowNanos) {
        deadlines.ring();
        boolean retry = false;
        if (Deadlines.isDue(nextDeadlineNanos(), nowNanos)) {
            retry = deadlines.takeRetry(nowNanos);
            if (state == State.HANDSHAKE) {
                checkHello(nowNanos);
            } else if (isClosing()) {
                checkClose(nowNanos);
            } else {
                checkSilence(nowNanos);
            }
        }
        settle(retry);
    }

    private void checkHello(long nowNanos) {
        if (deadlines.isHelloLate(nowNanos)) {
            abort(new ConnectionException.TimedOut(peer() + " is connected but did not "
                    + (role == Role.INITIATOR ? "answer HELLO" : "say HELLO") + " within "
                    + options.helloTimeoutMillis() + " ms"
                    + (window.isStarved() ? ", or this end had no memory for receives to answer with" : "")));
        }
    }

    private void checkClose(long nowNanos) {
        Endpoint current = endpoint;
        if (!deadlines.isCloseLate(nowNanos)) {
            return;
        }
        if (closeAnswered && current != null) {
            current.disconnect();
        } else {
            abort(new ConnectionException.TimedOut(peer() + " did not take what was queued and answer CLOSE within "
                    + options.closeTimeoutMillis() + " ms; " + outbox.queuedBytes()
                    + " bytes of messages are not delivered for certain"));
        }
    }

    private void checkSilence(long nowNanos) {
        long silentNanos = deadlines.silentNanos(nowNanos);
        if (silentNanos >= 2 * deadlines.keepAliveNanos()) {
            abort(new ConnectionException.TimedOut(peer() + " gave no sign of life for "
                    + TimeUnit.NANOSECONDS.toMillis(silentNanos) + " ms, though asked"));
        } else if (silentNanos >= deadlines.keepAliveNanos() && !pingOut && !pingDue) {
            pingDue = true;
            pingForKeepAlive = true;
            pingNonce = nowNanos;
            flush();
        }
    }

    private String peer() {
        Endpoint current = endpoint;
        return current == null ? "the peer" : String.valueOf(current.remoteAddress());
    }

    /** Sets the deadlines of what has begun, and tells the listener if the next one is nearer than it knows. */
    private void updateDeadlines() {
        if (state == State.HANDSHAKE) {
            deadlines.beginHandshake();
        } else if (state == State.ACTIVE) {
            if (isClosing()) {
                deadlines.beginClosing();
            } else if (!raw) {
                deadlines.watchSilence();
            }
        }
        long nextNanos = nextDeadlineNanos();
        if (deadlines.takeNearer(nextNanos)) {
            try {
                listener.onDeadline(this, nextNanos);
            } catch (Throwable e) {
                threw(e);
            }
        }
    }

    @Override
    public void onMemoryFreed() {
        if (!resumable) {
            resumable = true;
            listener.onResumable(this);
        }
    }

    /** Goes on after {@link MessageListener#onResumable}. The loop's. */
    public void resume() {
        resumable = false;
        if (busy || inBatch) {
            pumpAgain = true; // the batch's end does it all
            return;
        }
        if (!over && connected) {
            busy = true;
            try {
                assemble();
                inbox.deliverReady();
                inbox.readComplete();
            } catch (Throwable e) {
                threw(e);
            } finally {
                busy = false;
            }
        }
        settle(true);
    }

    @Override
    public void onPrepared(Endpoint endpoint) {
        this.endpoint = endpoint;
        if (aborted) {
            endpoint.disconnect();
            return;
        }
        busy = true;
        try {
            prepare(endpoint);
            listener.onPrepared(this);
        } catch (Throwable e) {
            threw(e);
        } finally {
            busy = false;
        }
        endpoint.flush();
        settle(false);
    }

    @Override
    public void onConnected(Endpoint endpoint, byte[] privateData) {
        connected = true;
        if (aborted) {
            return;
        }
        // Providers that learn from the peer what it can do know it now.
        capabilities = endpoint.capabilities();
        if (raw) {
            window.open();
            negotiated = new Negotiated(
                    0,
                    Framing.RAW,
                    Integer.MAX_VALUE,
                    Integer.MAX_VALUE,
                    Integer.MAX_VALUE,
                    window.bufferBytes(),
                    false);
            becomeActive(negotiated);
        } else {
            state = State.HANDSHAKE;
            if (role == Role.INITIATOR) {
                String strangeness = Wire.strangeness(options.framing(), privateData);
                if (strangeness != null) {
                    abort(new ProtocolException(
                            endpoint.remoteAddress() + " accepted the connection but is " + strangeness
                                    + ": use the framing that it speaks, RAW for programs that are not Verbena's"));
                    return;
                }
                helloDue = true;
            } else if (peerHello != null) {
                agree(endpoint, peerHello);
            }
        }
        if (!inBatch) {
            busy = true;
            try {
                inbox.deliverReady();
                inbox.readComplete();
            } finally {
                busy = false;
            }
            settle(true);
        }
    }

    @Override
    public void onSendCompletion(Endpoint endpoint, long workId, WorkStatus status, int lengthBytes) {
        inBatch = true;
        if (!ledger.isNext(workId)) {
            abort(new IllegalStateException("the provider completed work " + workId
                    + ", which is not next: completions must come in the order posted"));
            return;
        }
        completed(ledger.take(), status);
    }

    private void completed(@Nullable Work owner, WorkStatus status) {
        if (owner instanceof Operation operation) {
            int messages = ledger.takenMessages();
            if (messages == 1) {
                operationCompleted(operation, status);
            } else {
                segmentCompleted(operation, messages, status);
            }
        } else if (owner instanceof Inbound inbound) {
            readCompleted(inbound, status);
        } else if (status != WorkStatus.SUCCESS) {
            workFailed("control frame", status);
        }
    }

    private void readCompleted(Inbound inbound, WorkStatus status) {
        if (status != WorkStatus.SUCCESS) {
            workFailed("read of a message of " + inbound.totalBytes + " bytes that the peer advertised", status);
        }
        if (rendezvous.completed(inbound, status) && closeRequested) {
            inbox.discard();
        }
    }

    /** Moves fragments into memory that may be there now. */
    private void assemble() {
        if (!aborted && !over) {
            inbox.assemble();
        }
    }

    private boolean isDeliverable() {
        return !closeRequested && !aborted && (state == State.ACTIVE || state == State.LINGERING);
    }

    @Override
    public void onReceiveCompletion(
            Endpoint endpoint, long workId, WorkStatus status, int lengthBytes, int flags, int immediateData) {
        inBatch = true;
        ByteBuf buffer = window.take(workId);
        if (buffer == null) {
            abort(new IllegalStateException("the provider completed receive " + workId + ", which is not posted"));
            return;
        }
        if (status != WorkStatus.SUCCESS) {
            buffer.release();
            workFailed("receive of up to " + window.bufferBytes() + " bytes", status);
            return;
        }
        counters.frameReceived();
        heard = true;
        if (aborted) {
            buffer.release();
            return;
        }
        Frame.Listener listening = frameListener;
        if (listening != null && (flags & EndpointHandler.REMOTE_WRITE) == 0) {
            Frame frame =
                    raw ? Frame.raw(lengthBytes) : Frame.read(buffer, 0, Math.min(lengthBytes, buffer.capacity()));
            try {
                listening.onFrameReceived(frame);
            } catch (Throwable e) {
                buffer.release();
                threw(e);
                return;
            }
        }
        String wrong = raw
                ? rawReceived(buffer, lengthBytes, flags, immediateData)
                : frameReceived(endpoint, buffer, lengthBytes, flags, immediateData);
        if (wrong != null) {
            abort(new ProtocolException(endpoint.remoteAddress() + " broke the message protocol and was cut off: "
                    + wrong + ". Both ends must run the same protocol; see docs/protocol.md"));
        }
    }

    @Override
    public void onCompletionsHandled(Endpoint endpoint) {
        if (heard) {
            heard = false;
            deadlines.heard();
        }
        try {
            assemble();
            inbox.deliverReady();
            inbox.readComplete();
        } finally {
            inBatch = false;
        }
        settle(true);
    }

    @Override
    public void onDisconnected(Endpoint endpoint, @Nullable Throwable cause) {
        inBatch = false;
        if (state == State.INACTIVE) {
            return;
        }
        this.endpoint = endpoint;
        Throwable ending = ending(endpoint, cause);
        busy = true;
        try {
            releaseEndpointMemory();
            if (inbox.isReading() && state == State.ACTIVE && !closeRequested) {
                inbox.deliverReady();
                inbox.readComplete();
            }
            if (firstCause == null) {
                firstCause = ending;
            }
            over = true;
            failedOperations = outbox.unfinished();
            stallBecomes(NOTHING);
            advertised.clear();
            String why = "the connection to " + endpoint.remoteAddress() + " was closed";
            outbox.failAll(operation -> ending != null ? ending : notSent(operation, why));
        } catch (RuntimeException e) {
            threw(e);
        } finally {
            busy = false;
        }
        rendezvous.clear();
        inbox.dropIncomplete();
        if (ending == null && !closeRequested && !aborted && inbox.hasReady()) {
            writable = false;
            lingeringCause = null;
            state = State.LINGERING;
        } else {
            becomeInactive(ending);
        }
        settle(false);
    }

    /**
     * What it has done so far. Any thread.
     *
     * @return a snapshot; each number is from a moment ago at the latest
     */
    public MessageStatistics statistics() {
        return counters.snapshot();
    }

    @Override
    public String toString() {
        Endpoint current = endpoint;
        Operation waiting = outbox.firstWaiting();
        return "MessageConnection[" + role + " " + state + (closeRequested ? " closing" : "")
                + (peerClosed ? " peer closed" : "") + (aborted ? " aborted" : "")
                + (current == null ? "" : ", work out " + ledger.out()) + ", " + credits + ", queued "
                + outbox.queuedBytes() + " bytes in " + outbox.unfinished() + " operations"
                + (waiting == null ? "" : ", " + waiting.describe() + " waits for " + stallName())
                + ", " + inbox + ", " + window
                + (inBatch ? ", in a batch" : "") + (busy ? ", busy" : "") + "]";
    }

    /** For tests: message frames that may be sent now. */
    int creditsAvailable() {
        return credits.available();
    }

    private String stallName() {
        return switch (stall) {
            case CREDIT -> "credit";
            case SLOT -> "a slot";
            case MEMORY -> "memory";
            default -> "a flush";
        };
    }

    // Preparation and handshake.

    private void prepare(Endpoint endpoint) {
        prepared = true;
        capabilities = endpoint.capabilities();
        buffers = source.forDomain(endpoint.memoryDomain());
        int leastDepth = raw ? 1 : Credits.CONTROL_RECEIVES + 1;
        if (capabilities.sendDepth() < leastDepth) {
            throw new IllegalArgumentException("a sendDepth of " + capabilities.sendDepth()
                    + " is too small for framing " + options.framing() + ": ask for " + leastDepth + " or more");
        }
        if (!raw && capabilities.maxSges() < 2) {
            throw new IllegalArgumentException("framing " + options.framing()
                    + " needs 2 scatter/gather elements, the endpoint has "
                    + capabilities.maxSges() + ": ask for maxSges of 2 or more");
        }
        ledger.prepare(capabilities, buffers, !raw);
        request = ledger.request();
        inbox.prepare(buffers);
        rendezvous.prepare(capabilities, buffers);
        window.prepare(endpoint, capabilities, buffers, role == Role.ACCEPTOR);
    }

    private int features() {
        boolean sinks = capabilities.readDepth() > 0 && options.rendezvousThresholdBytes() < Integer.MAX_VALUE;
        return (sinks ? Wire.FEATURE_READS : 0)
                | (capabilities.immediateData() ? Wire.FEATURE_IMMEDIATE : 0)
                | (capabilities.atomics() ? Wire.FEATURE_ATOMICS : 0);
    }

    /** Says HELLO or HELLO_ACK, with the receives that are posted by now. */
    private boolean sayHello(Endpoint endpoint) {
        if (ledger.free(endpoint) < 1) {
            return false;
        }
        promiseMessages();
        if (credits.outstandingGrant() == 0) {
            // Once, also if the frame is refused and has to be said again.
            credits.openInbound(Math.max(0, window.grantable(inbox.undelivered())));
        }
        int firstGrant = credits.outstandingGrant();
        if (firstGrant < 1) {
            return false;
        }
        Wire.Hello hello = new Wire.Hello(
                Wire.VERSION,
                Wire.VERSION,
                options.framing().wireValue(),
                features(),
                window.bufferBytes(),
                firstGrant,
                window.greatest(),
                maxInboundBytes,
                options.maxRendezvous());
        ByteBuf memory = ledger.slots();
        hello.write(memory, ledger.slotOffset() + Wire.HEADER_BYTES);
        return postHeader(
                endpoint,
                null,
                role == Role.ACCEPTOR ? Wire.HELLO_ACK : Wire.HELLO,
                0,
                Wire.HELLO_BYTES - Wire.HEADER_BYTES);
    }

    /** A stream is delivered as it comes: its limit is for stretches by rendezvous, which need no part of the budget. */
    private void promiseMessages() {
        if (maxInboundBytes == 0) {
            maxInboundBytes = stream ? options.maxMessageBytes() : buffers.promise(options.maxMessageBytes());
        }
    }

    private @Nullable String helloReceived(Endpoint endpoint, int type, ByteBuf frame, int lengthBytes) {
        int expected = role == Role.ACCEPTOR ? Wire.HELLO : Wire.HELLO_ACK;
        if (type != expected || lengthBytes < Wire.HELLO_BYTES || peerHello != null) {
            return "it began with " + Wire.name(type) + " of " + lengthBytes + " bytes instead of "
                    + Wire.name(expected);
        }
        Wire.Hello hello = Wire.Hello.read(frame, Wire.HEADER_BYTES);
        if (hello == null) {
            return "its HELLO has no magic";
        }
        String nonsense = hello.nonsense();
        if (nonsense != null) {
            return "its HELLO tells of " + nonsense;
        }
        if (hello.framing() != options.framing().wireValue()) {
            return "it uses framing " + Wire.framingName(hello.framing()) + " and this end " + options.framing();
        }
        if (hello.leastVersion() > Wire.VERSION || hello.greatestVersion() < Wire.VERSION) {
            return "it speaks versions " + hello.leastVersion() + " to " + hello.greatestVersion() + " and this end "
                    + Wire.VERSION;
        }
        peerHello = hello;
        if (connected) {
            agree(endpoint, hello);
        }
        return null;
    }

    private void agree(Endpoint endpoint, Wire.Hello hello) {
        window.open();
        promiseMessages();
        credits.openOutbound(hello.window(), hello.greatestWindow());
        peerPayloadBytes = hello.receiveBufferBytes() - Wire.HEADER_BYTES;
        maxOutboundBytes = hello.maxMessageBytes();
        rendezvousThresholdBytes = options.rendezvousThresholdBytes() == MessageOptions.DEVICE_DEFAULT
                ? endpoint.rendezvousBytes(hello.receiveBufferBytes())
                : options.rendezvousThresholdBytes();
        peerFeatures = hello.features();
        maxRendezvousOut = Math.min(options.maxRendezvous(), hello.maxRendezvous());
        boolean rendezvous = (peerFeatures & Wire.FEATURE_READS) != 0
                && maxRendezvousOut > 0
                && rendezvousThresholdBytes < Integer.MAX_VALUE;
        if (!rendezvous) {
            maxRendezvousOut = 0;
        }
        helloDue = role == Role.ACCEPTOR;
        Negotiated agreed = new Negotiated(
                Wire.VERSION,
                options.framing(),
                hello.receiveBufferBytes(),
                hello.window(),
                maxOutboundBytes,
                maxInboundBytes,
                rendezvous);
        negotiated = agreed;
        becomeActive(agreed);
    }

    private void becomeActive(Negotiated agreed) {
        state = State.ACTIVE;
        writable = outbox.isNoneWaiting();
        FlightEvents.endConnect(connectEvent, this, role, agreed, null);
        connectEvent = null;
        boolean outer = busy;
        busy = true;
        try {
            listener.onActive(this, agreed);
        } catch (Throwable e) {
            threw(e);
        } finally {
            busy = outer;
        }
    }

    // The pump: whatever can go, goes, with one call to the device for receives and one for the rest.

    /**
     * How every way in ends: outcomes are told, what can go goes, and the end is told when there is nothing else to tell. Here alone, when the connection has
     * finished its own change, so that a callback may do anything; what it does settles in the same loop. Within another way in, that one does it.
     *
     * @param pumping whether something may go that could not before
     */
    private void settle(boolean pumping) {
        pumpAgain |= pumping;
        if (busy || inBatch) {
            return;
        }
        busy = true;
        while (true) {
            if (outbox.tellOutcome()) {
                continue;
            }
            if (pumpAgain) {
                pumpAgain = false;
                pump();
            } else if (endDue) {
                endDue = false;
                tellEnd();
            } else {
                break;
            }
        }
        updateDeadlines();
        busy = false;
        Error error = thrown;
        if (error != null) {
            thrown = null;
            throw error;
        }
    }

    private void pump() {
        Endpoint current = endpoint;
        if (current == null || !connected || aborted || over) {
            return;
        }
        try {
            pumpOnce(current);
        } catch (Throwable e) {
            threw(e);
        }
    }

    private void pumpOnce(Endpoint endpoint) {
        postReceives(endpoint);
        if (helloDue && sayHello(endpoint)) {
            helloDue = false;
        }
        if (state == State.ACTIVE && !helloDue) {
            rendezvous.post(endpoint, closeRequested);
            if (peerClosed) {
                giveUpWaiting();
            }
            postOperations(endpoint);
            postControl(endpoint);
        }
        if (ledger.takeStaged()) {
            endpoint.flush();
        }
        counters.present(Math.max(0, credits.available()), credits.outstandingGrant());
        counters.queued(outbox.queuedBytes());
        outbox.completeMessages();
        if (isClosing()) {
            finishClose(endpoint);
        }
        if (state == State.ACTIVE) {
            tellWritability();
        }
    }

    private void postReceives(Endpoint endpoint) {
        boolean wasStarved = window.isStarved();
        pumpAgain |= window.post(endpoint, inbox.undelivered(), inbox.isReading());
        if (window.isStarved() && !wasStarved) {
            counters.memoryStallBegan();
        }
        if (state == State.ACTIVE && !helloDue && !raw) {
            int more = window.grantable(inbox.undelivered());
            if (more > 0) {
                credits.grant(more);
            }
        }
    }

    private void writeHeader(int type, int length) {
        ByteBuf memory = ledger.slots();
        int offset = ledger.slotOffset();
        memory.setLong(
                offset,
                (long) type << 56
                        | (waited ? (long) Wire.WAITED << 48 : 0)
                        | (window.isReclaimDue() ? (long) Wire.RECLAIM << 48 : 0)
                        | (long) credits.controlForHeader() << 32
                        | Integer.toUnsignedLong(credits.grantForHeader()));
        memory.setLong(offset + 8, (long) rendezvous.done() << 32 | Integer.toUnsignedLong(length));
    }

    /** Stages the frame that the request describes. */
    private boolean postFrame(Endpoint endpoint, @Nullable Work owner, @Nullable ByteBuf copy) {
        Frame.Listener listening = frameListener;
        Frame frame = listening == null
                ? null
                : Frame.read(ledger.slots(), ledger.slotOffset(), (int)
                        request.buffers().totalBytes());
        if (!ledger.post(endpoint, owner, copy)) {
            return false;
        }
        counters.frameSent();
        credits.told();
        waited = false;
        window.reclaimTold();
        rendezvous.told();
        if (frame != null) {
            tellSent(listening, frame);
        }
        return true;
    }

    /** What the listener throws ends the connection, but the frame is with the device: whoever posted it goes on as if nothing were. */
    private void tellSent(Frame.@Nullable Listener listening, Frame frame) {
        if (listening != null) {
            try {
                listening.onFrameSent(frame);
            } catch (Throwable e) {
                threw(e);
            }
        }
    }

    /** Posts a frame that is all in its slot. */
    private boolean postHeader(Endpoint endpoint, @Nullable Work owner, int type, int length, int payloadBytes) {
        int frameBytes = Wire.HEADER_BYTES + payloadBytes;
        request.asSend(ledger.nextId(), ledger.inlineFlag(frameBytes));
        writeHeader(type, length);
        ledger.gatherSlot(frameBytes);
        return postFrame(endpoint, owner, null);
    }

    private void postControl(Endpoint endpoint) {
        if (raw || ledger.free(endpoint) < 1 || (closeSent && peerClosed)) {
            return;
        }
        if (credits.canSendControl()) {
            int type = nextControl();
            if (type != 0) {
                int payload = 0;
                if (type == Wire.PING || type == Wire.PONG) {
                    ledger.slots()
                            .setLong(
                                    ledger.slotOffset() + Wire.HEADER_BYTES, type == Wire.PING ? pingNonce : pongNonce);
                    payload = Wire.NONCE_BYTES;
                }
                int returned = type == Wire.RETURN ? credits.returnable() : 0;
                if (postHeader(endpoint, null, type, returned, payload)) {
                    credits.controlFrameSent();
                    counters.controlFrameSent();
                    credits.giveBack(returned);
                    controlSent(type);
                }
                return;
            }
        }
        if (credits.mustAnswer() && credits.canAnswer() && postHeader(endpoint, null, Wire.ACK, 0, 0)) {
            credits.answerSent();
            counters.controlFrameSent();
        }
    }

    private int nextControl() {
        if (pongDue) {
            return Wire.PONG;
        }
        if (closeSent) {
            return 0;
        }
        if (isCloseDue()) {
            return Wire.CLOSE;
        }
        if (pingDue) {
            return Wire.PING;
        }
        if (returnDue) {
            if (outbox.isNoneWaiting() && credits.returnable() > 0) {
                return Wire.RETURN;
            }
            returnDue = false;
        }
        return credits.grantDue() || window.isReclaimDue() || rendezvous.isTellDue() ? Wire.STATE : 0;
    }

    private void controlSent(int type) {
        switch (type) {
            case Wire.PONG -> pongDue = false;
            case Wire.RETURN -> returnDue = false;
            case Wire.PING -> {
                pingDue = false;
                pingOut = true;
            }
            case Wire.CLOSE -> {
                closeSent = true;
                closeAnswered = peerClosed;
            }
            default -> {
                // STATE: the header is all of it.
            }
        }
    }

    private boolean isCloseDue() {
        return peerClosed || (closeRequested && outbox.isNoneWaiting() && outbox.unfinished() == 0);
    }

    private boolean isClosing() {
        return closeRequested || peerClosed || aborted || over;
    }

    private void finishClose(Endpoint endpoint) {
        if (aborted || !ledger.isEmpty()) {
            return;
        }
        // Who said CLOSE first lets go; the other waits for that, so that nothing it has sent is lost on the way.
        if (raw ? closeRequested && outbox.unfinished() == 0 : closeSent && peerClosed && !closeAnswered) {
            endpoint.disconnect();
        }
    }

    private void tellWritability() {
        boolean now = outbox.isNoneWaiting() && !isClosing();
        if (now != writable) {
            writable = now;
            try {
                listener.onWritabilityChanged(this, now);
            } catch (Throwable e) {
                threw(e);
            }
        }
    }

    // Operations.

    private Operation newOneSided(
            Operation.Kind kind,
            long remoteAddress,
            int remoteKey,
            int immediateData,
            long compareOrAdd,
            long swap,
            ScatterGatherList local,
            @Nullable ReferenceCounted hold,
            OperationCallback callback,
            @Nullable Object context) {
        Operation operation = outbox.newOperation(kind, callback, context);
        operation.hold = hold;
        operation.remoteAddress = remoteAddress;
        operation.remoteKey = remoteKey;
        operation.immediateData = immediateData;
        operation.compareOrAdd = compareOrAdd;
        operation.swap = swap;
        try {
            operation.setPieces(local);
        } catch (IllegalStateException e) {
            operation.failure = e;
        }
        return operation;
    }

    private void checkSinks(ScatterGatherList local, @Nullable ReferenceCounted hold) {
        for (int i = 0; i < local.count(); i++) {
            Set<MemoryDomain.Access> access = local.region(i).access();
            if (!access.contains(MemoryDomain.Access.LOCAL_WRITE)) {
                throw refused("memory that is read into must be registered with LOCAL_WRITE", hold);
            }
            if (connected
                    && capabilities.readSinkNeedsRemoteWrite()
                    && !access.contains(MemoryDomain.Access.REMOTE_WRITE)) {
                throw refused("this adapter reads only into memory that is registered with REMOTE_WRITE as well", hold);
            }
        }
    }

    private void checkAtomic(long remoteAddress, ScatterGatherList local, @Nullable ReferenceCounted hold) {
        if (state == State.ACTIVE && !hasAtomics()) {
            throw missing("atomics", hold);
        }
        if ((remoteAddress & 7) != 0) {
            throw refused(
                    "an atomic's address must be a multiple of 8, not 0x" + Long.toHexString(remoteAddress), hold);
        }
        if (local.count() != 1 || local.length(0) != Long.BYTES) {
            throw refused("an atomic needs one local piece of 8 bytes for the old value", hold);
        }
        checkSinks(local, hold);
    }

    private static IllegalArgumentException refused(String message, @Nullable ReferenceCounted hold) {
        if (hold != null) {
            hold.release();
        }
        return new IllegalArgumentException(message);
    }

    private static UnsupportedOperationException missing(String what, @Nullable ReferenceCounted hold) {
        if (hold != null) {
            hold.release();
        }
        return new UnsupportedOperationException("this end's or the peer's device has no " + what);
    }

    private boolean hasImmediate() {
        return capabilities.immediateData() && (raw || (peerFeatures & Wire.FEATURE_IMMEDIATE) != 0);
    }

    private boolean hasAtomics() {
        return capabilities.atomics() && (raw || (peerFeatures & Wire.FEATURE_ATOMICS) != 0);
    }

    private void enqueueOneSided(Operation operation) {
        if (operation.failure == null) {
            operation.failure = refusal(operation);
        }
        if (operation.failure != null) {
            operation.posted = true;
            outbox.finish(operation);
            settle(false);
        } else {
            outbox.enqueue(operation);
        }
    }

    /** Why nothing more is taken, or null. */
    private @Nullable Throwable refusal(Operation operation) {
        if (!isClosing()) {
            return outputEnded && operation.kind == Operation.Kind.MESSAGE
                    ? notSent(operation, "the output was shut down")
                    : null;
        }
        Throwable cause = firstCause;
        return cause != null
                ? cause
                : notSent(operation, peerClosed ? "the peer closed the connection" : "the connection is closed");
    }

    private static ConnectionException notSent(Operation operation, String why) {
        return new ConnectionException.Lost(operation.describe() + " was not done: " + why);
    }

    private static MessageTooLargeException tooLarge(Operation operation, int limit) {
        return new MessageTooLargeException(
                "a message of " + operation.totalBytes + " bytes is over the peer's limit of " + limit
                        + ": send it in parts, or raise MAX_MESSAGE_BYTES at the peer, and the limit of its receive"
                        + " buffers if they cannot hold it");
    }

    private MessageTooLargeException tooLarge(Operation operation) {
        return tooLarge(operation, maxOutboundBytes);
    }

    private void postOperations(Endpoint endpoint) {
        int reserved = raw ? 0 : Credits.CONTROL_RECEIVES;
        while (true) {
            Operation operation = outbox.firstWaiting();
            if (operation == null) {
                stallBecomes(NOTHING);
                return;
            }
            int obstacle;
            try {
                obstacle = ledger.free(endpoint) <= reserved ? SLOT : postNext(endpoint, operation);
            } catch (RuntimeException e) {
                // Refused before it reached the device: what is out of it finishes, the rest is not done.
                operation.failure = e;
                operation.posted = true;
                obstacle = NOTHING;
                if (operation.kind == Operation.Kind.MESSAGE
                        && (stream || operation.remainingBytes < operation.totalBytes)) {
                    abort(e);
                    return;
                }
            }
            if (obstacle != NOTHING) {
                stalled(obstacle);
                return;
            }
            while (operation != null && operation.posted) { // several, if they went in one frame
                outbox.removeFirstWaiting();
                maybeComplete(operation);
                operation = outbox.firstWaiting();
            }
        }
    }

    private void stalled(int obstacle) {
        if (obstacle == MEMORY && !ledger.hasCopiesOut()) {
            deadlines.retry();
        }
        stallBecomes(obstacle);
    }

    /** What the first operation waits for now. */
    private void stallBecomes(int obstacle) {
        if (obstacle == stall) {
            return;
        }
        if (stall == CREDIT) {
            counters.creditStallEnded(System.nanoTime() - stalledSinceNanos);
            FlightEvents.endCreditStall(stallEvent, this, over);
            stallEvent = null;
        }
        stall = obstacle;
        switch (obstacle) {
            case CREDIT -> {
                waited = true;
                counters.creditStallBegan();
                stalledSinceNanos = System.nanoTime();
                stallEvent = FlightEvents.beginCreditStall(outbox.queuedBytes());
            }
            case SLOT -> counters.slotStallBegan();
            case MEMORY -> counters.memoryStallBegan();
            default -> {
                // Nothing waits.
            }
        }
    }

    private int postNext(Endpoint endpoint, Operation operation) {
        if (operation.kind != Operation.Kind.MESSAGE) {
            return postOneSided(endpoint, operation);
        }
        if (raw) {
            return postRaw(endpoint, operation);
        }
        boolean first = operation.remainingBytes == operation.totalBytes;
        if (stream) {
            return postStream(endpoint, operation);
        }
        if (first && operation.totalBytes > maxOutboundBytes) {
            operation.failure = tooLarge(operation);
            operation.posted = true;
            return NOTHING;
        }
        if (credits.available() <= 0) {
            return CREDIT;
        }
        if (first && maxRendezvousOut > 0 && operation.totalBytes > rendezvousThresholdBytes) {
            if (rendezvousAdvertised - rendezvousDoneByPeer >= maxRendezvousOut) {
                return SLOT;
            }
            if (gatherAdvertisement(operation, operation.totalBytes)) {
                return postAdvertisement(endpoint, operation, operation.totalBytes);
            }
        }
        return postFragment(endpoint, operation);
    }

    /** The next frame of a stream, with as much of what waits as goes into it. */
    private int postStream(Endpoint endpoint, Operation operation) {
        if (operation.remainingBytes == 0 && !operation.end) {
            operation.posted = true; // nothing was written, and that has been sent
            return NOTHING;
        }
        if (credits.available() <= 0) {
            return CREDIT;
        }
        if (operation.end) {
            if (!postHeader(endpoint, operation, Wire.END, 0, 0)) {
                return SLOT;
            }
            credits.messageFrameSent();
            messagePosted(operation, 0);
            return NOTHING;
        }
        if (operation.rendezvous || wantsRendezvous(operation)) {
            if (rendezvousAdvertised - rendezvousDoneByPeer >= maxRendezvousOut) {
                return SLOT;
            }
            int stretch = Math.min(operation.remainingBytes, Math.min(STREAM_RENDEZVOUS_BYTES, maxOutboundBytes));
            if (gatherAdvertisement(operation, stretch)) {
                operation.rendezvous = true;
                return postAdvertisement(endpoint, operation, stretch);
            }
        }
        return postSegment(endpoint, operation);
    }

    private boolean wantsRendezvous(Operation operation) {
        return maxRendezvousOut > 0
                && operation.remainingBytes == operation.totalBytes
                && operation.totalBytes > rendezvousThresholdBytes;
    }

    /** One frame with bytes of the message at the head of the queue and of those behind it, as many as one receive of the peer takes. */
    private int postSegment(Endpoint endpoint, Operation first) {
        int wanted = segmentBytes(first);
        boolean single = wanted <= first.remainingBytes;
        int payload = wanted;
        ByteBuf copy = null;
        int flags = ledger.inlineFlag(Wire.HEADER_BYTES + wanted);
        boolean inSlot = wanted <= SendLedger.SLOT_BYTES - Wire.HEADER_BYTES;
        if (!inSlot && (single || wanted > COALESCED_BYTES)) {
            request.asSend(ledger.nextId(), flags);
            ledger.gatherSlot(Wire.HEADER_BYTES);
            payload = gatherSegment(first, wanted);
        }
        if (inSlot) {
            request.asSend(ledger.nextId(), flags);
            copySegment(first, ledger.slots(), ledger.slotOffset() + Wire.HEADER_BYTES, wanted);
            ledger.gatherSlot(Wire.HEADER_BYTES + wanted);
            counters.copied(wanted);
        } else if ((!single && wanted <= COALESCED_BYTES) || payload < wanted - wanted / 2) {
            payload = wanted;
            request.asSend(ledger.nextId(), flags);
            ledger.gatherSlot(Wire.HEADER_BYTES);
            copy = ledger.stage(endpoint, wanted);
            if (copy == null) {
                return MEMORY;
            }
            copySegment(first, copy, 0, wanted);
            counters.copied(wanted);
        }
        writeHeader(Wire.MESSAGE, payload);
        if (!postFrame(endpoint, first, copy)) {
            return SLOT;
        }
        credits.messageFrameSent();
        ledger.lastHasMessages(segmentPosted(first, payload));
        return NOTHING;
    }

    /**
     * How long the next segment is. It fills the peer's receive, but ends between two writes if the next one would fit into a segment of its own: a decoder that
     * gets whole frames need not put them together again. A short write, as a frame's header is, stays with what follows it.
     */
    private int segmentBytes(Operation first) {
        int bytes = Math.min(first.remainingBytes, peerPayloadBytes);
        int boundary = bytes;
        for (Operation next = first.next; next != null; next = next.next) {
            if (next.kind != Operation.Kind.MESSAGE || next.end || wantsRendezvous(next)) {
                break;
            }
            int room = peerPayloadBytes - bytes;
            if (next.remainingBytes > room
                    && next.remainingBytes <= peerPayloadBytes
                    && boundary >= peerPayloadBytes / 2) {
                return boundary;
            }
            if (room == 0) {
                break;
            }
            bytes += Math.min(next.remainingBytes, room);
            if (next.remainingBytes > HEADER_WRITE_BYTES) {
                boundary = bytes;
            }
        }
        return bytes;
    }

    /** Adds registered memory of the messages from this one on, without copying; returns the bytes covered. */
    private int gatherSegment(Operation first, int wanted) {
        ScatterGatherList into = request.buffers();
        int covered = 0;
        for (Operation next = first; next != null && covered < wanted; next = next.next) {
            int part = Math.min(next.remainingBytes, wanted - covered);
            if (part > 0) {
                int pieces = capabilities.maxSges() - into.count();
                boolean dear = pieces == 0 || isViewOfManyPieces(messageOf(next));
                int added = dear ? 0 : gatherMessage(next, part, pieces, into);
                covered += added;
                if (added < part) {
                    break;
                }
            }
        }
        return covered;
    }

    /** Netty's views of composite buffers do not tell where they begin: finding their pieces costs more than copying them, if there are many. */
    private static boolean isViewOfManyPieces(ByteBuf buffer) {
        if (buffer instanceof CompositeByteBuf || buffer.isContiguous()) {
            return false;
        }
        for (ByteBuf root = buffer.unwrap(); root != null; root = root.unwrap()) {
            if (root instanceof CompositeByteBuf composite) {
                return composite.numComponents() > MAX_VIEWED_PIECES;
            }
        }
        return false;
    }

    private static void copySegment(Operation first, ByteBuf target, int offset, int lengthBytes) {
        int copied = 0;
        for (Operation next = first; next != null && copied < lengthBytes; next = next.next) {
            int part = Math.min(next.remainingBytes, lengthBytes - copied);
            if (part > 0) {
                messageOf(next).getBytes(next.index, target, offset + copied, part);
                copied += part;
            }
        }
    }

    /** The messages that a segment has bytes of have moved on; returns how many they are. */
    private int segmentPosted(Operation first, int payload) {
        int messages = 0;
        int left = payload;
        Operation next = first;
        while (next != null && left > 0) {
            int part = Math.min(next.remainingBytes, left);
            messagePosted(next, part);
            left -= part;
            messages++;
            next = next.next;
        }
        return messages;
    }

    private void segmentCompleted(Operation first, int messages, WorkStatus status) {
        Operation operation = first;
        for (int i = 0; i < messages && operation != null; i++) {
            Operation next = operation.nextMessage; // it may be over, and used again, after this
            operationCompleted(operation, status);
            operation = next;
        }
    }

    private static ByteBuf messageOf(Operation operation) {
        ByteBuf message = operation.message;
        if (message == null) {
            throw new IllegalStateException("a message without memory");
        }
        return message;
    }

    /** Adds registered memory from the message's index on; returns the bytes covered. */
    private int gatherMessage(Operation operation, int lengthBytes, int maxPieces, ScatterGatherList into) {
        ByteBuf message = messageOf(operation);
        RegisteredMemory registration = operation.registration;
        if (registration == null) {
            int covered = buffers.gather(message, operation.index, lengthBytes, maxPieces, into);
            boolean begun = operation.remainingBytes < operation.totalBytes;
            if (covered > 0 || begun || operation.totalBytes <= options.registerThresholdBytes()) {
                return covered;
            }
            registration = register(operation, Set.of());
            if (registration == null) {
                return 0;
            }
        }
        into.add(registration, operation.totalBytes - operation.remainingBytes, lengthBytes);
        return lengthBytes;
    }

    /** Registers a message for its operation; null if it is on the heap, in pieces, or the device refuses: then it goes another way. */
    private @Nullable RegisteredMemory register(Operation operation, Set<MemoryDomain.Access> access) {
        Endpoint current = endpoint;
        if (operation.registrationTried || current == null) {
            return null;
        }
        operation.registrationTried = true;
        try {
            RegisteredMemory registration = OperationRegistration.register(
                    messageOf(operation),
                    operation.index - (operation.totalBytes - operation.remainingBytes),
                    operation.totalBytes,
                    current.memoryDomain(),
                    access);
            operation.registration = registration;
            if (registration != null) {
                counters.registered();
            }
            return registration;
        } catch (RdmaException e) {
            // The limit of locked memory may be reached, and fragments work without; the statistics show them.
            return null;
        }
    }

    private int postFragment(Endpoint endpoint, Operation operation) {
        int type = operation.remainingBytes == operation.totalBytes ? Wire.MESSAGE : Wire.CONTINUATION;
        int wanted = Math.min(operation.remainingBytes, peerPayloadBytes);
        int payload = wanted;
        ByteBuf copy = null;
        request.asSend(ledger.nextId(), ledger.inlineFlag(Wire.HEADER_BYTES + wanted));
        ledger.gatherSlot(Wire.HEADER_BYTES);
        if (wanted > 0) {
            payload = gatherMessage(operation, wanted, capabilities.maxSges() - 1, request.buffers());
            if (payload < wanted && payload < peerPayloadBytes / MIN_FRAGMENT_DIVISOR + 1) {
                payload = wanted;
                request.asSend(ledger.nextId(), ledger.inlineFlag(Wire.HEADER_BYTES + wanted));
                if (wanted <= SendLedger.SLOT_BYTES - Wire.HEADER_BYTES) {
                    messageOf(operation)
                            .getBytes(operation.index, ledger.slots(), ledger.slotOffset() + Wire.HEADER_BYTES, wanted);
                    ledger.gatherSlot(Wire.HEADER_BYTES + wanted);
                } else {
                    ledger.gatherSlot(Wire.HEADER_BYTES);
                    copy = copy(endpoint, operation, wanted);
                    if (copy == null) {
                        return MEMORY;
                    }
                }
                counters.copied(wanted);
            }
        }
        writeHeader(type, operation.remainingBytes);
        if (!postFrame(endpoint, operation, copy)) {
            return SLOT;
        }
        credits.messageFrameSent();
        messagePosted(operation, payload);
        return NOTHING;
    }

    private void messagePosted(Operation operation, int payload) {
        operation.outstanding++;
        operation.index += payload;
        operation.remainingBytes -= payload;
        operation.posted = operation.remainingBytes == 0;
    }

    private @Nullable ByteBuf copy(Endpoint endpoint, Operation operation, int lengthBytes) {
        ByteBuf copy = ledger.stage(endpoint, lengthBytes);
        if (copy != null) {
            messageOf(operation).getBytes(operation.index, copy, 0, lengthBytes);
        }
        return copy;
    }

    private int postRaw(Endpoint endpoint, Operation operation) {
        int total = operation.totalBytes;
        if (total > capabilities.maxMessageBytes()) {
            operation.failure = tooLarge(operation, (int) capabilities.maxMessageBytes());
            operation.posted = true;
            return NOTHING;
        }
        ByteBuf copy = null;
        request.asSend(ledger.nextId(), ledger.inlineFlag(total));
        if (total > 0 && gatherMessage(operation, total, capabilities.maxSges(), request.buffers()) < total) {
            request.asSend(ledger.nextId(), ledger.inlineFlag(total));
            copy = copy(endpoint, operation, total);
            if (copy == null) {
                return MEMORY;
            }
            counters.copied(total);
        }
        if (!ledger.post(endpoint, operation, copy)) {
            return SLOT;
        }
        counters.frameSent();
        if (frameListener != null) {
            tellSent(frameListener, Frame.raw(total));
        }
        messagePosted(operation, total);
        return NOTHING;
    }

    /** Finds the pieces to advertise; false if the message is not in memory that the peer may read, or in too many pieces. */
    private boolean gatherAdvertisement(Operation operation, int lengthBytes) {
        advertisement.clear();
        int total = operation.totalBytes;
        RegisteredMemory registration = operation.registration;
        if (registration == null) {
            int maxPieces = Math.min(Wire.MAX_PIECES, peerPayloadBytes / Wire.PIECE_BYTES);
            int covered = buffers.gather(messageOf(operation), operation.index, lengthBytes, maxPieces, advertisement);
            if (covered == lengthBytes && everyPieceMayBeRead()) {
                return true;
            }
            advertisement.clear();
            // A key for this message alone, that opens nothing else of the pool's memory.
            if (covered == lengthBytes || (covered == 0 && total > options.registerThresholdBytes())) {
                registration = register(operation, REMOTE_READ);
            }
        }
        if (registration == null || !registration.access().contains(MemoryDomain.Access.REMOTE_READ)) {
            return false;
        }
        advertisement.add(registration, total - operation.remainingBytes, lengthBytes);
        return true;
    }

    private boolean everyPieceMayBeRead() {
        for (int i = 0; i < advertisement.count(); i++) {
            if (!advertisement.region(i).access().contains(MemoryDomain.Access.REMOTE_READ)) {
                return false;
            }
        }
        return true;
    }

    private int postAdvertisement(Endpoint endpoint, Operation operation, int lengthBytes) {
        int count = advertisement.count();
        int bytes = count * Wire.PIECE_BYTES;
        ByteBuf copy = null;
        ByteBuf target = ledger.slots();
        int offset = ledger.slotOffset() + Wire.HEADER_BYTES;
        request.asSend(ledger.nextId(), ledger.inlineFlag(Wire.HEADER_BYTES + bytes));
        if (Wire.HEADER_BYTES + bytes <= SendLedger.SLOT_BYTES) {
            ledger.gatherSlot(Wire.HEADER_BYTES + bytes);
        } else {
            ledger.gatherSlot(Wire.HEADER_BYTES);
            copy = ledger.stage(endpoint, bytes);
            if (copy == null) {
                return MEMORY;
            }
            target = copy;
            offset = 0;
        }
        for (int i = 0; i < count; i++) {
            target.setLong(offset, advertisement.address(i));
            target.setInt(offset + 8, advertisement.region(i).remoteKey());
            target.setInt(offset + 12, advertisement.length(i));
            offset += Wire.PIECE_BYTES;
        }
        advertisement.clear();
        writeHeader(Wire.RENDEZVOUS, lengthBytes);
        if (!postFrame(endpoint, operation, copy)) {
            return SLOT;
        }
        credits.messageFrameSent();
        operation.advertisedOut++;
        rendezvousAdvertised++;
        counters.rendezvousSent();
        operation.rendezvousEvent = FlightEvents.advertised(operation.rendezvousEvent, operation.totalBytes, count);
        advertised.add(operation);
        messagePosted(operation, lengthBytes);
        return NOTHING;
    }

    private int postOneSided(Endpoint endpoint, Operation operation) {
        boolean reads = operation.kind.reads();
        if (reads && ledger.readsOut() >= capabilities.readDepth()) {
            if (capabilities.readDepth() == 0) {
                throw new UnsupportedOperationException(
                        "this connection was made with a read depth of 0: ask for more to read or to do atomics");
            }
            return SLOT;
        }
        int most = operation.kind == Operation.Kind.READ ? capabilities.maxReadSges() : capabilities.maxSges();
        int count = Math.min(most, operation.pieces - operation.nextPiece);
        boolean last = operation.nextPiece + count == operation.pieces;
        int bytes = 0;
        for (int i = 0; i < count; i++) {
            bytes += operation.lengths[operation.nextPiece + i];
        }
        switch (operation.kind) {
            case READ -> request.asRead(ledger.nextId(), 0, operation.remoteAddress, operation.remoteKey);
            case WRITE_WITH_IMMEDIATE -> {
                if (!hasImmediate()) {
                    throw missing("writes with immediate data", null);
                }
                if (last) {
                    if (!raw && credits.available() <= 0) {
                        return CREDIT;
                    }
                    request.asWriteWithImmediate(
                            ledger.nextId(),
                            ledger.inlineFlag(bytes),
                            operation.remoteAddress,
                            operation.remoteKey,
                            operation.immediateData);
                } else {
                    request.asWrite(
                            ledger.nextId(), ledger.inlineFlag(bytes), operation.remoteAddress, operation.remoteKey);
                }
            }
            case COMPARE_AND_SWAP, FETCH_AND_ADD -> {
                if (!hasAtomics()) {
                    throw missing("atomics", null);
                }
                if (operation.kind == Operation.Kind.COMPARE_AND_SWAP) {
                    request.asCompareAndSwap(
                            ledger.nextId(),
                            0,
                            operation.remoteAddress,
                            operation.remoteKey,
                            operation.compareOrAdd,
                            operation.swap);
                } else {
                    request.asFetchAndAdd(
                            ledger.nextId(), 0, operation.remoteAddress, operation.remoteKey, operation.compareOrAdd);
                }
            }
            default ->
                request.asWrite(
                        ledger.nextId(), ledger.inlineFlag(bytes), operation.remoteAddress, operation.remoteKey);
        }
        for (int i = operation.nextPiece; i < operation.nextPiece + count; i++) {
            request.buffers().add(operation.regions[i], operation.offsets[i], operation.lengths[i]);
        }
        if (!ledger.post(endpoint, operation, null)) {
            return SLOT;
        }
        if (reads) {
            ledger.countRead(1);
        } else if (last && operation.kind == Operation.Kind.WRITE_WITH_IMMEDIATE && !raw) {
            credits.messageFrameSent();
        }
        operation.outstanding++;
        operation.nextPiece += count;
        operation.remoteAddress += bytes;
        operation.posted = last;
        return NOTHING;
    }

    private void operationCompleted(Operation operation, WorkStatus status) {
        operation.outstanding--;
        if (operation.kind.reads()) {
            ledger.countRead(-1);
        }
        if (status != WorkStatus.SUCCESS) {
            operation.failed = true;
            if (status != WorkStatus.FLUSHED) {
                workFailed(operation.describe(), status);
            }
        }
        maybeComplete(operation);
    }

    private void maybeComplete(Operation operation) {
        if (operation.outstanding > 0 || !operation.posted) {
            return;
        }
        if (operation.failed && operation.failure == null) {
            // Its cause is known when the connection has ended. Messages are found in their own list.
            if (operation.kind != Operation.Kind.MESSAGE) {
                outbox.addFailed(operation);
            }
            return;
        }
        if (operation.kind != Operation.Kind.MESSAGE) {
            outbox.finish(operation);
        } else if (operation.advertisedOut == 0) {
            operation.done = true;
            outbox.completeMessages();
        }
    }

    /** The peer has closed: what is not on its way stays here. */
    private void giveUpWaiting() {
        Operation operation = outbox.firstWaiting();
        while (operation != null) {
            outbox.removeFirstWaiting();
            operation.failure = notSent(operation, "the peer closed the connection");
            operation.posted = true;
            maybeComplete(operation);
            operation = outbox.firstWaiting();
        }
    }

    private void workFailed(String what, WorkStatus status) {
        boolean closed = closeSent && peerClosed;
        if (status != WorkStatus.FLUSHED && !closed) {
            FlightEvents.completionError(this, what, status);
        }
        if (status != WorkStatus.FLUSHED && firstCause == null && !aborted && !closed) {
            Endpoint current = endpoint;
            firstCause = new WorkCompletionException(
                    what + (current == null ? "" : " with " + current.remoteAddress()), status, 0);
        }
    }

    /** What a callback, or the provider, has thrown ends the connection. The first error goes on to whoever called, when all is settled. */
    private void threw(Throwable failure) {
        abort(failure);
        if (thrown == null && failure instanceof Error error) {
            thrown = error;
        }
    }

    // Inbound.

    private @Nullable String rawReceived(ByteBuf buffer, int lengthBytes, int flags, int immediateData) {
        boolean write = (flags & EndpointHandler.REMOTE_WRITE) != 0;
        boolean immediate = (flags & EndpointHandler.WITH_IMMEDIATE) != 0;
        if (closeRequested) {
            window.reuse(buffer);
        } else if (write) {
            window.reuse(buffer);
            inbox.arrived(null, false, true, immediateData, lengthBytes);
        } else if (lengthBytes > buffer.capacity()) {
            buffer.release();
            return "a receive of " + buffer.capacity() + " bytes reports " + lengthBytes;
        } else {
            buffer.setIndex(0, lengthBytes);
            inbox.arrived(buffer, true, immediate, immediateData, lengthBytes);
        }
        return null;
    }

    private @Nullable String frameReceived(
            Endpoint endpoint, ByteBuf buffer, int lengthBytes, int flags, int immediateData) {
        if ((flags & EndpointHandler.REMOTE_WRITE) != 0) {
            window.reuse(buffer);
            if (state != State.ACTIVE || peerClosed) {
                return "it wrote with immediate data before HELLO or after CLOSE";
            }
            String wrong = window.messageFrameCame();
            if (wrong == null && !closeRequested) {
                inbox.arrived(null, false, true, immediateData, lengthBytes);
            }
            return wrong;
        }
        if (lengthBytes < Wire.HEADER_BYTES || lengthBytes > buffer.capacity()) {
            buffer.release();
            return "it sent " + lengthBytes + " bytes, and a header has " + Wire.HEADER_BYTES;
        }
        long first = buffer.getLong(0);
        long second = buffer.getLong(8);
        int type = (int) (first >>> 56);
        String wrong;
        if (state != State.ACTIVE) {
            wrong = helloReceived(endpoint, type, buffer, lengthBytes);
            window.controlCame();
            window.reuse(buffer);
            return wrong;
        }
        if (((first >>> 48) & Wire.WAITED) != 0) {
            window.peerWaited();
        }
        returnDue |= ((first >>> 48) & Wire.RECLAIM) != 0;
        wrong = credits.heard((int) first, (int) (first >>> 32) & 0xffff);
        if (wrong == null) {
            wrong = rendezvousHeard((int) (second >>> 32));
        }
        if (wrong != null) {
            buffer.release();
            return wrong;
        }
        if (Wire.isMessageClass(type)) {
            wrong = window.messageFrameCame();
            if (wrong == null && peerClosed) {
                wrong = "it sent " + Wire.name(type) + " after CLOSE";
            }
            if (wrong != null || (closeRequested && type != Wire.RENDEZVOUS)) {
                window.reuse(buffer);
                return wrong;
            }
            return messageFrame(type, buffer, lengthBytes - Wire.HEADER_BYTES, (int) second);
        }
        wrong = controlFrame(type, buffer, lengthBytes);
        window.controlCame();
        window.reuse(buffer);
        return wrong;
    }

    private @Nullable String controlFrame(int type, ByteBuf buffer, int lengthBytes) {
        if (type == Wire.ACK) {
            credits.answerReceived();
            return null;
        }
        boolean nonce = type == Wire.PING || type == Wire.PONG;
        if ((!nonce && type != Wire.STATE && type != Wire.CLOSE && type != Wire.RETURN)
                || lengthBytes < Wire.HEADER_BYTES + (nonce ? Wire.NONCE_BYTES : 0)) {
            return "it sent " + Wire.name(type) + " of " + lengthBytes + " bytes";
        }
        String wrong = credits.controlFrameReceived();
        if (wrong != null) {
            return wrong;
        }
        switch (type) {
            case Wire.PING -> {
                pongDue = true;
                pongNonce = buffer.getLong(Wire.HEADER_BYTES);
            }
            case Wire.PONG -> {
                if (!pingOut || buffer.getLong(Wire.HEADER_BYTES) != pingNonce) {
                    return "it answered a ping that was not sent";
                }
                pingOut = false;
                if (!pingForKeepAlive) {
                    callback(Wire.PONG);
                }
            }
            case Wire.RETURN -> {
                return window.grantsReturned((int) buffer.getLong(8));
            }
            case Wire.CLOSE -> {
                if (peerClosed) {
                    return "it said CLOSE twice";
                }
                if (inbox.isWithinMessage() && !closeRequested) {
                    return "it said CLOSE within a message";
                }
                peerClosed = true;
            }
            default -> {
                // STATE: the header was all of it.
            }
        }
        return null;
    }

    private void callback(int type) {
        boolean outer = busy;
        busy = true;
        try {
            if (type == Wire.PONG) {
                listener.onPong(this, pingNonce);
            }
        } catch (Throwable e) {
            threw(e);
        } finally {
            busy = outer;
        }
    }

    private @Nullable String rendezvousHeard(int done) {
        int news = done - rendezvousDoneByPeer;
        if (news == 0) {
            return null;
        }
        if (news < 0 || news > rendezvousAdvertised - rendezvousDoneByPeer) {
            return "it says that " + Integer.toUnsignedString(done) + " messages were read, and "
                    + Integer.toUnsignedString(rendezvousAdvertised) + " were advertised";
        }
        rendezvousDoneByPeer = done;
        for (int i = 0; i < news; i++) {
            Operation operation = advertised.poll();
            if (operation != null) {
                operation.advertisedOut--;
                if (operation.advertisedOut == 0 && operation.posted) {
                    FlightEvents.endRendezvous(operation.rendezvousEvent, this);
                    operation.rendezvousEvent = null;
                }
                maybeComplete(operation);
            }
        }
        return null;
    }

    private @Nullable String messageFrame(int type, ByteBuf buffer, int payload, int length) {
        int maxPayload = window.bufferBytes() - Wire.HEADER_BYTES;
        String wrong = null;
        if (stream && peerEnded) {
            wrong = "it sent " + Wire.name(type) + " after the end of its stream";
        } else if (type == Wire.END) {
            return ended(buffer, payload, length);
        } else if (stream
                && (type == Wire.CONTINUATION || (type == Wire.MESSAGE && (payload != length || payload == 0)))) {
            wrong = "it sent " + Wire.name(type) + " of " + payload + " bytes of " + Integer.toUnsignedString(length)
                    + " in a stream";
        } else if (length < 0 || (type != Wire.RENDEZVOUS && payload > length)) {
            wrong = "it sent " + payload + " bytes of " + Integer.toUnsignedString(length);
        } else if (type != Wire.RENDEZVOUS && payload < length && payload < maxPayload / MIN_FRAGMENT_DIVISOR) {
            wrong = "it sent a fragment of " + payload + " bytes of " + length;
        } else if (type == Wire.CONTINUATION) {
            if (!inbox.isWithinMessage() || length != inbox.expectedBytes() || payload == 0) {
                wrong = "it continues a message at " + length + " bytes before its end, expected "
                        + (inbox.isWithinMessage() ? String.valueOf(inbox.expectedBytes()) : "none");
            } else {
                buffer.setIndex(Wire.HEADER_BYTES, Wire.HEADER_BYTES + payload);
                inbox.proceed(buffer);
                return null;
            }
        } else if (inbox.isWithinMessage()) {
            wrong = "it began a message within another";
        } else if (length > maxInboundBytes && (!stream || type == Wire.RENDEZVOUS)) {
            wrong = "it sent a message of " + length + " bytes, over the limit of " + maxInboundBytes;
        } else if (type == Wire.RENDEZVOUS) {
            wrong = (features() & Wire.FEATURE_READS) == 0
                    ? "it advertised more messages than it may"
                    : rendezvous.advertised(buffer, payload, length, closeRequested);
            window.reuse(buffer);
            return wrong;
        } else if (payload == length) {
            buffer.setIndex(Wire.HEADER_BYTES, Wire.HEADER_BYTES + payload);
            inbox.received(buffer);
            return null;
        } else {
            buffer.setIndex(Wire.HEADER_BYTES, Wire.HEADER_BYTES + payload);
            inbox.begin(buffer, length);
            return null;
        }
        buffer.release();
        return wrong;
    }

    private @Nullable String ended(ByteBuf buffer, int payload, int length) {
        window.reuse(buffer);
        if (!stream || payload != 0 || length != 0) {
            return "it sent END of " + payload + " bytes of " + length + " with framing " + options.framing();
        }
        peerEnded = true;
        inbox.ended();
        return null;
    }

    // The end.

    /** Why it ended; null if in good order. */
    private @Nullable Throwable ending(Endpoint endpoint, @Nullable Throwable cause) {
        if (firstCause instanceof WorkCompletionException && isExplained(cause)) {
            firstCause = cause;
        }
        if (firstCause != null) {
            return firstCause;
        }
        if (aborted || (closeSent && (peerClosed || cause == null))) {
            return null;
        }
        if (cause != null || raw) {
            return cause;
        }
        return new ConnectionException.Lost(endpoint.remoteAddress()
                + (state == State.ACTIVE
                        ? " disconnected without saying CLOSE: its program ended or was killed, or a device went down"
                        : " disconnected during the handshake"));
    }

    /** Whether the endpoint knows what a work request failed for: what its device has reported of itself. */
    private static boolean isExplained(@Nullable Throwable cause) {
        return cause instanceof ConnectionException && cause.getCause() instanceof WorkCompletionException;
    }

    private void releaseEndpointMemory() {
        if (prepared) {
            window.release();
        }
        while (!ledger.isEmpty()) {
            // The provider owes these completions; their memory is free all the same now.
            Work owner = ledger.take();
            if (owner instanceof Operation first) {
                Operation operation = first;
                for (int i = ledger.takenMessages(); i > 0 && operation != null; i--) {
                    Operation next = operation.nextMessage;
                    operation.failed = true;
                    operation.outstanding--;
                    maybeComplete(operation);
                    operation = next;
                }
            }
        }
        ledger.release();
    }

    private void becomeInactive(@Nullable Throwable cause) {
        state = State.INACTIVE;
        writable = false;
        inbox.clear();
        counters.present(0, 0);
        if (negotiated == null) {
            FlightEvents.endConnect(connectEvent, this, role, null, cause);
        } else {
            FlightEvents.disconnected(this, cause, failedOperations);
        }
        endDue = true;
        endCause = cause;
    }

    private void tellEnd() {
        try {
            listener.onInactive(this, endCause);
        } catch (Throwable e) {
            threw(e);
        }
    }

    // Time.

}
