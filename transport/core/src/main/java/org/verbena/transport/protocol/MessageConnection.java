package org.verbena.transport.protocol;

import io.netty.buffer.ByteBuf;
import io.netty.util.ReferenceCounted;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.protocol.Lifecycle.Phase;
import org.verbena.transport.spi.ConnectionException;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointCapabilities;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.WorkCompletionException;
import org.verbena.transport.spi.WorkStatus;

/**
 * The message protocol over one endpoint: give it to {@code RdmaProvider.connect} or {@code IncomingConnection.accept}
 * as the handler, with {@link #privateData(MessageOptions)} in the endpoint's options. It does no I/O and has neither a
 * thread nor a clock of its own: it calls the endpoint and its listener, and is called on the endpoint's loop only.
 *
 * <p>Operations are queued in the order given and go to the device in that order at {@link #flush()} at the latest;
 * what has to wait for the peer's credits, the send queue or the read depth continues by itself and never fails for
 * that reason. Each operation's callback is called exactly once, messages' in the order sent.
 */
public final class MessageConnection implements EndpointHandler, MessageBuffers.Waiter {

    /** Who speaks first. */
    public enum Role {
        /** Called connect: says HELLO. */
        INITIATOR,
        /** Accepted: answers. */
        ACCEPTOR
    }

    /** The reason of a rejection for want of a pre-shared key. */
    public static final String KEY_REQUIRED = "a pre-shared key is required";

    /** What {@link #nextDeadlineNanos()} is when nothing is due at any time. */
    public static final long NO_DEADLINE = Deadlines.NONE;

    private final Role role;
    private final MessageOptions options;
    private final MessageBuffers.Source source;
    private final MessageListener listener;
    private final boolean raw;
    private final Lifecycle life = new Lifecycle();
    private final Credits credits = new Credits();
    private final ConnectionCounters counters = new ConnectionCounters();
    private final Outbox outbox = new Outbox(counters, this::threw);
    private final SendLedger ledger;
    private final ReceiveWindow window;
    private final Inbox inbox;
    private final RendezvousReceiver rendezvous;
    private final FrameSender frames;
    private final SendMemory sendMemory;
    private final RendezvousSender rendezvousSender;
    private final Handshake handshake;
    private final Framer framer;
    private final Consumer<Operation> onRead = this::maybeComplete;
    private final OneSided oneSided;
    private final ControlFrames control;
    private final Deadlines deadlines;

    private boolean prepared;

    /** STREAM: this end's half is closed, or will be when what was sent before has gone. */
    private boolean outputEnded;

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

    // Operations.
    /** The end is still to be told, after all outcomes. */
    private boolean endDue;

    private @Nullable Throwable endCause;
    /** What a callback has thrown and whoever called is still to be given. */
    private @Nullable Error thrown;

    private boolean writable;
    private Obstacle stall = Obstacle.NONE;

    // Inbound.

    private volatile boolean resumable;

    private boolean helloDue;

    // Signs of life.
    private boolean heard;

    // For whoever watches.
    private FlightEvents.@Nullable Connect connectEvent;
    private FlightEvents.@Nullable CreditStall stallEvent;
    private long stalledSinceNanos;
    private int failedOperations;

    /**
     * Makes one, for one endpoint.
     *
     * @param role which end sends first
     * @param options the options of this end
     * @param buffers the source of registered memory
     * @param listener receives the events
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
        ledger = new SendLedger(options.maxInlineBytes(), counters);
        window = new ReceiveWindow(options, credits, counters, this);
        inbox = new Inbox(
                this,
                listener,
                window,
                counters,
                options.framing() == Framing.STREAM,
                this::isDeliverable,
                this::threw);
        deadlines = new Deadlines(options, nanoClock);
        rendezvous = new RendezvousReceiver(this, options, inbox, ledger, counters, deadlines);
        frames = new FrameSender(credits, ledger, counters, window, rendezvous, this::threw);
        sendMemory = new SendMemory(options, ledger, counters);
        rendezvousSender = new RendezvousSender(this, options, credits, ledger, sendMemory, frames, counters);
        handshake = new Handshake(role, options);
        framer = newFramer(options.framing());
        oneSided = new OneSided(outbox, ledger, credits, handshake, raw);
        control = new ControlFrames(life, credits, ledger, frames, window, inbox, rendezvous, outbox, counters);
        connectEvent = FlightEvents.beginConnect();
    }

    private Framer newFramer(Framing framing) {
        return switch (framing) {
            case MESSAGE ->
                new MessageFramer(
                        ledger,
                        sendMemory,
                        frames,
                        counters,
                        window,
                        inbox,
                        credits,
                        handshake,
                        rendezvousSender,
                        rendezvous);
            case STREAM ->
                new StreamFramer(
                        ledger,
                        sendMemory,
                        frames,
                        counters,
                        window,
                        inbox,
                        credits,
                        handshake,
                        rendezvousSender,
                        rendezvous);
            case RAW -> new RawFramer(ledger, sendMemory, frames, counters, window, inbox);
        };
    }

    /**
     * The private data for a connect request or its acceptance, which identifies the protocol to the other end.
     *
     * @param options the options of this end
     * @return empty for RAW
     */
    public static byte[] privateData(MessageOptions options) {
        return Wire.preamble(options.framing());
    }

    /**
     * Makes both ends prove a pre-shared key in the handshake. Until the peer has done so, this end sends it nothing but the handshake, delivers nothing from
     * it, and refuses its one-sided operations where the provider can. Call it before the endpoint is made.
     *
     * @param keys an initiator proves the first of them; an acceptor accepts any
     * @throws IllegalArgumentException the framing is RAW, which has no handshake, or receives are too short for it
     */
    public void authenticate(PreSharedKeys keys) {
        if (raw) {
            throw new IllegalArgumentException(
                    "framing RAW has no handshake in which a pre-shared key could be proved: use MESSAGE or STREAM");
        }
        int bytes = options.receiveBufferBytes();
        if (bytes != MessageOptions.DEVICE_DEFAULT && bytes < Authentication.LEAST_RECEIVE_BYTES) {
            throw new IllegalArgumentException("receiveBufferBytes " + bytes
                    + " is too small for a handshake with a pre-shared key: "
                    + Authentication.LEAST_RECEIVE_BYTES + " or more");
        }
        handshake.authenticate(keys);
    }

    /**
     * The private data of this connection's connect request or acceptance. Call {@link #authenticate} first, if at all.
     *
     * @return empty for RAW
     */
    public byte[] privateData() {
        return handshake.privateData();
    }

    /**
     * Validates a connect request's private data as {@link #rejection(MessageOptions, byte[])} does, for an end that may require a pre-shared key.
     *
     * @param options the options of this end
     * @param keys the keys that this end accepts; null if it requires none
     * @param privateData the private data of the request
     * @return null if the peer is compatible; otherwise the reason, as private data for the rejection
     */
    public static byte @Nullable [] rejection(
            MessageOptions options, @Nullable PreSharedKeys keys, byte[] privateData) {
        byte[] rejection = rejection(options, privateData);
        if (rejection == null && keys != null && (privateData[Wire.PREAMBLE_FLAGS] & Wire.AUTHENTICATES) == 0) {
            return Wire.rejection(KEY_REQUIRED);
        }
        return rejection;
    }

    /**
     * Validates a connect request's private data. Returns null to accept it, or the payload for {@code
     * IncomingConnection.reject}.
     *
     * @param options the options of this end
     * @param privateData the private data of the request
     * @return null if the peer is compatible; otherwise the reason, as private data for the rejection
     */
    public static byte @Nullable [] rejection(MessageOptions options, byte[] privateData) {
        String violation = Wire.violation(options.framing(), privateData);
        return violation == null ? null : Wire.rejection(violation);
    }

    /**
     * Decodes the reason of a rejection.
     *
     * @param privateData of {@code ConnectionException.Rejected}
     * @return the reason, or null if the private data has none of this protocol
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
     * Sets a listener for each frame, for debugging.
     *
     * @param value called for each frame from now on, on the loop; null for none
     */
    public void setFrameListener(Frame.@Nullable Listener value) {
        frames.setListener(value);
    }

    /** Whether the endpoint's addresses are known. */
    boolean isPrepared() {
        return prepared;
    }

    /**
     * The agreed parameters.
     *
     * @return null before the listener's {@code onActive}
     */
    public @Nullable Negotiated negotiated() {
        return handshake.negotiated();
    }

    /**
     * Queues a message; with STREAM framing, bytes of any number. It may be called before {@code onActive}. A message
     * above the peer's limit fails with {@link MessageTooLargeException}, and on a connection that has ended with the
     * connection's cause. Success means that the peer's adapter has all of it (verbs) or that TCP has taken it (soft),
     * not that the peer's program has seen it. Messages sent by rendezvous have arrived in the peer's memory.
     *
     * @param message sent from its reader index to its writer index; this method takes ownership, also if it fails
     * @param callback called with the outcome
     * @param context passed to the callback
     */
    public void send(ByteBuf message, OperationCallback callback, @Nullable Object context) {
        Operation operation = outbox.newOperation(Operation.Kind.MESSAGE, callback, context);
        operation.message = message;
        operation.index = message.readerIndex();
        operation.totalBytes = message.readableBytes();
        operation.remainingBytes = operation.totalBytes;
        boolean tooLarge = options.framing() != Framing.STREAM && operation.totalBytes > handshake.maxOutboundBytes();
        enqueueMessage(operation, tooLarge ? Framer.tooLarge(operation, handshake.maxOutboundBytes()) : null);
    }

    /**
     * Closes this end's half of a stream: what was sent before is sent, then the peer's {@code onEnd} is called. Later
     * sends fail. Reading continues.
     *
     * @param callback called with the outcome, after those of everything sent before
     * @param context passed to the callback
     * @throws UnsupportedOperationException the framing is not STREAM
     */
    public void shutdownOutput(OperationCallback callback, @Nullable Object context) {
        if (options.framing() != Framing.STREAM) {
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
     * Queues a read of the peer's memory. A read into more elements than a work request can have is split into several.
     *
     * @param remoteAddress the address in the peer's memory
     * @param remoteKey the peer's key for it
     * @param local the memory to read into; the list is read during the call only, and the regions are held until the
     *     outcome
     * @param hold released with the outcome, for example the buffer that contains the memory; null for nothing. Taken
     *     even if this method throws
     * @param callback called with the outcome
     * @param context passed to the callback
     * @throws IllegalArgumentException a region without LOCAL_WRITE, or without REMOTE_WRITE where the adapter asks for
     *     it
     */
    public void read(
            long remoteAddress,
            int remoteKey,
            ScatterGatherList local,
            @Nullable ReferenceCounted hold,
            OperationCallback callback,
            @Nullable Object context) {
        oneSided.checkSinks(local, hold, life.isUp());
        enqueueOneSided(oneSided.newOperation(
                Operation.Kind.READ, remoteAddress, remoteKey, 0, 0, 0, local, hold, callback, context));
    }

    /**
     * Queues a write into the peer's memory. Success does not mean that the peer's program can see the data: a message
     * sent after it does.
     *
     * @param remoteAddress the address in the peer's memory
     * @param remoteKey the peer's key for it
     * @param local the memory to write from; the list is read during the call only, and the regions are held until the
     *     outcome
     * @param hold released with the outcome; null for nothing. Taken even if this method throws
     * @param callback called with the outcome
     * @param context passed to the callback
     */
    public void write(
            long remoteAddress,
            int remoteKey,
            ScatterGatherList local,
            @Nullable ReferenceCounted hold,
            OperationCallback callback,
            @Nullable Object context) {
        enqueueOneSided(oneSided.newOperation(
                Operation.Kind.WRITE, remoteAddress, remoteKey, 0, 0, 0, local, hold, callback, context));
    }

    /**
     * Queues a write that notifies the peer with 32 bits, in order with messages. Takes a credit like a message.
     *
     * @param remoteAddress the address in the peer's memory
     * @param remoteKey the peer's key for it
     * @param immediateData for the peer's {@code onImmediate}
     * @param local the memory to write from; the list is read during the call only, and the regions are held until the
     *     outcome
     * @param hold released with the outcome; null for nothing. Taken even if this method throws
     * @param callback called with the outcome
     * @param context passed to the callback
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
        if (life.isAgreed()) {
            oneSided.checkImmediate(hold);
        }
        enqueueOneSided(oneSided.newOperation(
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
     * @param remoteAddress the address in the peer's memory; a multiple of 8
     * @param remoteKey the peer's key for it
     * @param expected swap only if the old value equals this
     * @param value the new value
     * @param local one element of 8 bytes for the old value, in host order; read during the call only
     * @param hold released with the outcome; null for nothing. Taken even if this method throws
     * @param callback called with the outcome
     * @param context passed to the callback
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
        oneSided.checkAtomic(remoteAddress, local, hold, life.isUp(), life.isAgreed());
        enqueueOneSided(oneSided.newOperation(
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
     * @param remoteAddress the address in the peer's memory; a multiple of 8
     * @param remoteKey the peer's key for it
     * @param add the value to add; overflow wraps
     * @param local one element of 8 bytes for the old value, in host order; read during the call only
     * @param hold released with the outcome; null for nothing. Taken even if this method throws
     * @param callback called with the outcome
     * @param context passed to the callback
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
        oneSided.checkAtomic(remoteAddress, local, hold, life.isUp(), life.isAgreed());
        enqueueOneSided(oneSided.newOperation(
                Operation.Kind.FETCH_AND_ADD, remoteAddress, remoteKey, 0, add, 0, local, hold, callback, context));
    }

    /**
     * Sends what is queued, as far as possible, with one call to the device. From within a callback it takes effect at
     * the end of the batch of completions. Waiting work continues by itself when credits and slots come back.
     */
    public void flush() {
        settle(true);
    }

    /**
     * Whether the next message is sent without waiting.
     *
     * @return false before {@code onActive}, while operations wait for credits or slots, and once closed
     */
    public boolean isWritable() {
        return writable;
    }

    /**
     * The size of messages that are queued and have no outcome yet.
     *
     * @return the sum of their bytes
     */
    public long queuedBytes() {
        return outbox.queuedBytes();
    }

    /**
     * Stops or resumes the delivery of messages; initially on. While it is off no receives are posted for further
     * messages, so the peer runs out of credits and stops. May be called from {@code onMessage}; then no further
     * message is delivered.
     *
     * @param reading whether to deliver
     * @return whether messages are waiting to be delivered: then {@link #deliverPending()} is to be called soon, from a
     *     task of the loop
     */
    public boolean setReading(boolean reading) {
        inbox.setReading(reading);
        if (reading && life.isAgreed()) {
            flush();
        }
        return reading && inbox.hasReady();
    }

    /**
     * Delivers messages that arrived while reading was off, then calls {@code onReadComplete}. Does nothing while
     * reading is off, or within a callback.
     */
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
        endLingering();
        settle(true);
    }

    /** All that the peer had sent has been read. */
    private void endLingering() {
        if (life.is(Phase.LINGERING) && inbox.isEmpty()) {
            becomeInactive(null);
        }
    }

    /**
     * Sends a ping; {@code onPong} follows. It overtakes queued messages and needs none of their credits.
     *
     * @param nonce returned with the answer
     * @return false if an earlier ping is unanswered, or the connection is not active, or RAW: nothing is sent
     */
    public boolean ping(long nonce) {
        if (!life.is(Phase.ACTIVE) || raw || control.isPinging()) {
            return false;
        }
        control.ping(nonce, false);
        flush();
        return true;
    }

    /**
     * Closes in good order: what is queued is sent, then CLOSE; when the peer has answered, the connection is
     * disconnected and {@code onInactive(null)} follows. Later sends fail. Idempotent.
     */
    public void close() {
        if (life.isCloseRequested() || life.is(Phase.ABORTED) || life.is(Phase.INACTIVE)) {
            return;
        }
        life.requestClose();
        inbox.discard();
        if (life.is(Phase.LINGERING)) {
            becomeInactive(null);
            settle(false);
        } else if (life.isAgreed()) {
            flush();
        } else {
            abort(null);
        }
    }

    /**
     * Ends the connection now. What is queued or in flight fails with this cause when the device has released it;
     * {@code onInactive} follows. Idempotent.
     *
     * @param cause the cause for everything pending; null for a plain close
     */
    public void abort(@Nullable Throwable cause) {
        if (life.is(Phase.INACTIVE)) {
            return;
        }
        if (life.is(Phase.LINGERING)) {
            becomeInactive(cause);
            settle(false);
            return;
        }
        life.abort(cause);
        Endpoint current = endpoint;
        if (current != null) {
            current.disconnect();
        }
    }

    /**
     * When to call {@link #onDeadline}: for the timeouts of handshake and close, and for keepalive. An idle connection
     * without keepalive has no deadline. {@link MessageListener#onDeadline} is called when it gets earlier.
     *
     * @return a time of {@link System#nanoTime()}, or {@link #NO_DEADLINE}
     */
    public long nextDeadlineNanos() {
        return life.isUp()
                ? deadlines.next(life.is(Phase.HANDSHAKE), life.isClosing(), control.isPinging())
                : NO_DEADLINE;
    }

    /**
     * Handles deadlines: call it when {@link #nextDeadlineNanos()} has come. Calling it early does no harm.
     *
     * @param nowNanos {@link System#nanoTime()}
     */
    public void onDeadline(long nowNanos) {
        deadlines.ring();
        boolean retry = false;
        if (Deadlines.isDue(nextDeadlineNanos(), nowNanos)) {
            retry = deadlines.takeRetry(nowNanos);
            checkMessage(nowNanos);
            if (life.is(Phase.HANDSHAKE)) {
                checkHello(nowNanos);
            } else if (life.isClosing()) {
                checkClose(nowNanos);
            } else if (deadlines.watchesSilence()) {
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
        if (life.hasAnswered() && current != null) {
            current.disconnect();
        } else {
            abort(new ConnectionException.TimedOut(peer() + " did not accept what was queued and answer CLOSE within "
                    + options.closeTimeoutMillis() + " ms; " + outbox.queuedBytes()
                    + " bytes of messages may not have been delivered"));
        }
    }

    private void checkSilence(long nowNanos) {
        long silentNanos = deadlines.silentNanos(nowNanos);
        if (silentNanos >= 2 * deadlines.keepAliveNanos()) {
            abort(new ConnectionException.TimedOut(peer() + " did not answer a keepalive and was silent for "
                    + TimeUnit.NANOSECONDS.toMillis(silentNanos) + " ms"));
        } else if (silentNanos >= deadlines.keepAliveNanos() && !control.isPinging()) {
            control.ping(nowNanos, true);
            flush();
        }
    }

    /** A peer that stops within a message, though it may send, holds memory that others wait for. */
    private void checkMessage(long nowNanos) {
        if (deadlines.takeMessage(nowNanos)
                && inbox.standsStill()
                && inbox.isReading()
                && credits.outstandingGrant() > 0
                && buffers.isMessageAwaited()) {
            abort(new ConnectionException.TimedOut(peer() + " stopped sending within a message, "
                    + inbox.expectedBytes() + " bytes before its end, while others waited for memory to receive into"));
        }
    }

    private String peer() {
        Endpoint current = endpoint;
        return current == null ? "the peer" : String.valueOf(current.remoteAddress());
    }

    /** Sets the deadlines of what has begun, and tells the listener if the next one is nearer than it knows. */
    private void updateDeadlines() {
        if (life.is(Phase.HANDSHAKE)) {
            deadlines.beginHandshake();
        } else if (life.isAgreed()) {
            if (life.isClosing()) {
                deadlines.beginClosing();
            } else if (!raw) {
                deadlines.watchSilence();
            }
        }
        deadlines.watchMessage(inbox.isWithinMessage());
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

    /** Continues after {@link MessageListener#onResumable}. The loop's thread only. */
    public void resume() {
        resumable = false;
        if (busy || inBatch) {
            pumpAgain = true; // the batch's end does it all
            return;
        }
        if (life.isUp() || life.is(Phase.LINGERING)) {
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
            endLingering();
        }
        settle(true);
    }

    /** Whoever runs the other side can do nothing about what this side lacks, but come back later. */
    @Override
    public byte[] rejection(Endpoint endpoint) {
        return raw ? new byte[0] : Wire.rejection("the server cannot serve another connection now");
    }

    @Override
    public void onPrepared(Endpoint endpoint) {
        this.endpoint = endpoint;
        if (life.is(Phase.ABORTED)) {
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
        if (life.is(Phase.ABORTED)) {
            return;
        }
        life.connected();
        // Providers that learn from the peer what it can do know it now.
        capabilities = endpoint.capabilities();
        handshake.prepare(capabilities);
        framer.prepare(capabilities);
        oneSided.prepare(capabilities);
        if (raw) {
            window.open();
            becomeActive(handshake.agreeRaw(window.bufferBytes()));
        } else {
            if (role == Role.INITIATOR) {
                String violation = Wire.violation(options.framing(), privateData);
                if (violation != null) {
                    abort(new ProtocolException(endpoint.remoteAddress() + " accepted the connection but is "
                            + violation + ": use the framing that it speaks, RAW for programs that are not Verbena's"));
                    return;
                }
                String refusal = handshake.takeAcceptance(privateData);
                if (refusal != null) {
                    abort(refused(endpoint, refusal));
                    return;
                }
                helloDue = true;
            } else {
                agree(endpoint);
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
        if (rendezvous.completed(inbound, status) && life.isCloseRequested()) {
            inbox.discard();
        }
    }

    /** Moves fragments into memory that may be there now. */
    private void assemble() {
        if (life.isUp() || life.is(Phase.LINGERING)) {
            inbox.assemble();
        }
    }

    private boolean isDeliverable() {
        return !life.isCloseRequested() && (life.isAgreed() || life.is(Phase.LINGERING));
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
        if (life.is(Phase.ABORTED)) {
            buffer.release();
            return;
        }
        Frame.Listener listening = frames.listener();
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
        String wrong = framer instanceof RawFramer unframed
                ? unframed.received(buffer, lengthBytes, flags, immediateData, life.isCloseRequested())
                : frameReceived(endpoint, buffer, lengthBytes, flags, immediateData);
        if (wrong != null && handshake.hasRefused()) {
            abort(refused(endpoint, wrong));
        } else if (wrong != null) {
            abort(new ProtocolException(
                    endpoint.remoteAddress() + " violated the message protocol and was disconnected: " + wrong
                            + ". Both ends must run the same protocol; see docs/protocol.md"));
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
        if (life.isDisconnected()) {
            return;
        }
        this.endpoint = endpoint;
        Throwable ending = ending(endpoint, cause);
        boolean lingers = false;
        busy = true;
        try {
            releaseEndpointMemory();
            if (inbox.isReading() && life.isAgreed()) {
                assemble(); // into the memory that the endpoint had
                inbox.deliverReady();
                inbox.readComplete();
            }
            life.keepCause(ending);
            lingers = ending == null && !life.isCloseRequested() && !life.is(Phase.ABORTED);
            life.disconnected();
            failedOperations = outbox.unfinished();
            stallBecomes(Obstacle.NONE);
            rendezvousSender.clear();
            String why = "the connection to " + endpoint.remoteAddress() + " was closed";
            outbox.failAll(operation -> ending != null ? ending : notSent(operation, why));
        } catch (RuntimeException e) {
            threw(e);
        } finally {
            busy = false;
        }
        rendezvous.clear();
        inbox.dropIncomplete();
        writable = false;
        if (!lingers || inbox.isEmpty()) {
            becomeInactive(ending);
        }
        settle(false);
    }

    /**
     * Its counters. Any thread.
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
        return "MessageConnection[" + role + " " + life
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
        sendMemory.prepare(endpoint, buffers);
        handshake.prepare(capabilities);
        framer.prepare(capabilities);
        oneSided.prepare(capabilities);
        inbox.prepare(buffers);
        rendezvous.prepare(capabilities, buffers);
        window.prepare(endpoint, capabilities, buffers, role == Role.ACCEPTOR);
        if (handshake.isAuthenticating()) {
            endpoint.allowRemoteAccess(false);
        }
    }

    private static AuthenticationException refused(Endpoint endpoint, String why) {
        return new AuthenticationException(endpoint.remoteAddress() + " was disconnected: " + why
                + ". Both ends need the same pre-shared key, id and secret");
    }

    /** Says HELLO or HELLO_ACK, with the receives that are posted by now. */
    private boolean sayHello(Endpoint endpoint) {
        if (ledger.free(endpoint) < 1) {
            return false;
        }
        if (credits.outstandingGrant() == 0) {
            // Once, also if the frame is refused and has to be said again.
            credits.openInbound(Math.max(0, window.grantable(inbox.undelivered())));
        }
        int firstGrant = credits.outstandingGrant();
        if (firstGrant < 1) {
            return false;
        }
        int index = ledger.slotOffset() + Wire.HEADER_BYTES;
        handshake
                .hello(buffers, window.bufferBytes(), firstGrant, window.greatest())
                .write(ledger.slots(), index);
        byte[] proof = handshake.proof(ledger.slots(), index);
        return frames.postHeader(endpoint, handshake.type(), Wire.HELLO_BYTES - Wire.HEADER_BYTES, proof);
    }

    private @Nullable String helloReceived(Endpoint endpoint, int type, ByteBuf frame, int lengthBytes) {
        String violation = handshake.receive(type, frame, lengthBytes);
        if (violation == null && life.isUp()) {
            agree(endpoint);
        }
        return violation;
    }

    /** Connected, and the peer has said HELLO. */
    private void agree(Endpoint endpoint) {
        Wire.Hello hello = handshake.peer();
        if (hello != null) {
            window.open();
            credits.openOutbound(hello.window(), hello.greatestWindow());
            helloDue = role == Role.ACCEPTOR;
            if (handshake.isAuthenticating()) {
                endpoint.allowRemoteAccess(true);
            }
            becomeActive(handshake.agree(endpoint, hello, buffers, rendezvousSender));
        }
    }

    private void becomeActive(Negotiated agreed) {
        life.agreed();
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
            } else if (control.takePong()) {
                tellPong();
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
        if (current == null || !life.isUp()) {
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
        if (life.isAgreed() && !helloDue) {
            rendezvous.post(endpoint, life.isCloseRequested());
            if (life.hasPeerClosed()) {
                giveUpWaiting();
            }
            postOperations(endpoint);
            if (!raw) {
                control.post(endpoint);
            }
        }
        if (ledger.takeStaged()) {
            endpoint.flush();
        }
        counters.present(Math.max(0, credits.available()), credits.outstandingGrant());
        counters.queued(outbox.queuedBytes());
        outbox.completeMessages();
        if (life.isClosing()) {
            finishClose(endpoint);
        }
        if (life.isAgreed()) {
            tellWritability();
        }
    }

    private void postReceives(Endpoint endpoint) {
        boolean wasStarved = window.isStarved();
        pumpAgain |= window.post(endpoint, inbox.undelivered(), inbox.isReading());
        if (window.isStarved() && !wasStarved) {
            counters.memoryStallBegan();
        }
        if (life.isAgreed() && !helloDue && !raw) {
            int more = window.grantable(inbox.undelivered());
            if (more > 0) {
                credits.grant(more);
            }
        }
    }

    private void finishClose(Endpoint endpoint) {
        if (!life.isUp() || !ledger.isEmpty()) {
            return;
        }
        // Who said CLOSE first lets go; the other waits for that, so that nothing it has sent is lost on the way.
        if (raw ? life.isCloseRequested() && outbox.unfinished() == 0 : life.is(Phase.CLOSED) && !life.hasAnswered()) {
            endpoint.disconnect();
        }
    }

    private void tellWritability() {
        boolean now = outbox.isNoneWaiting() && !life.isClosing();
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
        if (!life.isClosing()) {
            return outputEnded && operation.kind == Operation.Kind.MESSAGE
                    ? notSent(operation, "the output was shut down")
                    : null;
        }
        Throwable cause = life.firstCause();
        return cause != null
                ? cause
                : notSent(
                        operation,
                        life.hasPeerClosed() ? "the peer closed the connection" : "the connection is closed");
    }

    private static ConnectionException notSent(Operation operation, String why) {
        return new ConnectionException.Lost(operation.describe() + " was not done: " + why);
    }

    private void postOperations(Endpoint endpoint) {
        int reserved = raw ? 0 : Credits.CONTROL_RECEIVES;
        while (true) {
            Operation operation = outbox.firstWaiting();
            if (operation == null) {
                stallBecomes(Obstacle.NONE);
                return;
            }
            Obstacle obstacle;
            try {
                obstacle = ledger.free(endpoint) <= reserved
                        ? Obstacle.SLOT
                        : operation.kind == Operation.Kind.MESSAGE
                                ? framer.post(endpoint, operation)
                                : oneSided.post(endpoint, operation);
            } catch (RuntimeException e) {
                // Refused before it reached the device: what is out of it finishes, the rest is not done.
                operation.failure = e;
                operation.posted = true;
                obstacle = Obstacle.NONE;
                if (operation.kind == Operation.Kind.MESSAGE && framer.hasBegun(operation)) {
                    abort(e);
                    return;
                }
            }
            if (obstacle != Obstacle.NONE) {
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

    private void stalled(Obstacle obstacle) {
        if (obstacle == Obstacle.MEMORY && !ledger.hasCopiesOut()) {
            deadlines.retry();
        }
        stallBecomes(obstacle);
    }

    /** What the first operation waits for now. */
    private void stallBecomes(Obstacle obstacle) {
        if (obstacle == stall) {
            return;
        }
        if (stall == Obstacle.CREDIT) {
            counters.creditStallEnded(System.nanoTime() - stalledSinceNanos);
            FlightEvents.endCreditStall(stallEvent, this, life.isDisconnected());
            stallEvent = null;
        }
        stall = obstacle;
        switch (obstacle) {
            case CREDIT -> {
                frames.waited();
                counters.creditStallBegan();
                stalledSinceNanos = System.nanoTime();
                stallEvent = FlightEvents.beginCreditStall(outbox.queuedBytes());
            }
            case SLOT -> counters.slotStallBegan();
            case MEMORY -> counters.memoryStallBegan();
            case NONE -> {
                // Nothing waits.
            }
        }
    }

    private void segmentCompleted(Operation first, int messages, WorkStatus status) {
        Operation operation = first;
        for (int i = 0; i < messages && operation != null; i++) {
            Operation next = operation.nextMessage; // it may be over, and used again, after this
            operationCompleted(operation, status);
            operation = next;
        }
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
        boolean closed = life.is(Phase.CLOSED);
        if (status != WorkStatus.FLUSHED && !closed) {
            FlightEvents.completionError(this, what, status);
        }
        if (status != WorkStatus.FLUSHED && !life.is(Phase.ABORTED) && !closed) {
            Endpoint current = endpoint;
            life.keepCause(new WorkCompletionException(
                    what + (current == null ? "" : " with " + current.remoteAddress()), status, 0));
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

    private @Nullable String frameReceived(
            Endpoint endpoint, ByteBuf buffer, int lengthBytes, int flags, int immediateData) {
        if ((flags & EndpointHandler.REMOTE_WRITE) != 0) {
            window.reuse(buffer);
            if (!life.isAgreed() || life.hasPeerClosed()) {
                return "it wrote with immediate data before HELLO or after CLOSE";
            }
            String wrong = window.messageFrameCame();
            if (wrong == null && !life.isCloseRequested()) {
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
        if (!life.isAgreed()) {
            wrong = helloReceived(endpoint, type, buffer, lengthBytes);
            window.controlCame();
            window.reuse(buffer);
            return wrong;
        }
        if (((first >>> 48) & Wire.WAITED) != 0) {
            window.peerWaited();
        }
        if (((first >>> 48) & Wire.RECLAIM) != 0) {
            control.grantsWanted();
        }
        wrong = credits.heard((int) first, (int) (first >>> 32) & 0xffff);
        if (wrong == null) {
            wrong = rendezvousSender.heard((int) (second >>> 32), onRead);
        }
        if (wrong != null) {
            buffer.release();
            return wrong;
        }
        if (Wire.isMessageClass(type)) {
            wrong = window.messageFrameCame();
            if (wrong == null && life.hasPeerClosed()) {
                wrong = "it sent " + Wire.name(type) + " after CLOSE";
            }
            if (wrong != null || (life.isCloseRequested() && type != Wire.RENDEZVOUS)) {
                window.reuse(buffer);
                return wrong;
            }
            return framer.received(
                    type, buffer, lengthBytes - Wire.HEADER_BYTES, (int) second, life.isCloseRequested());
        }
        wrong = control.received(type, buffer, lengthBytes);
        window.controlCame();
        window.reuse(buffer);
        return wrong;
    }

    // The end.

    /** Why it ended; null if in good order. */
    private @Nullable Throwable ending(Endpoint endpoint, @Nullable Throwable cause) {
        if (life.firstCause() instanceof WorkCompletionException && isExplained(cause)) {
            life.explain(cause);
        }
        Throwable first = life.firstCause();
        if (first != null) {
            return first;
        }
        if (life.is(Phase.ABORTED) || life.is(Phase.CLOSED) || (life.isCloseSent() && cause == null)) {
            return null;
        }
        if (life.is(Phase.HANDSHAKE) && handshake.isAuthenticating()) {
            String why =
                    endpoint.remoteAddress() + " disconnected during the handshake: does it have the pre-shared key"
                            + " of this end, with the same secret? Its log says, and it tells nobody else";
            return cause == null ? new ConnectionException.Lost(why) : new ConnectionException.Lost(why, cause);
        }
        if (cause != null || raw) {
            return cause;
        }
        return new ConnectionException.Lost(endpoint.remoteAddress()
                + (life.isAgreed()
                        ? " disconnected without sending CLOSE: its program ended or was killed, or a device went down"
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
        if (life.is(Phase.INACTIVE)) {
            return;
        }
        life.inactive();
        writable = false;
        inbox.clear();
        counters.present(0, 0);
        if (handshake.negotiated() == null) {
            FlightEvents.endConnect(connectEvent, this, role, null, cause);
        } else {
            FlightEvents.disconnected(this, cause, failedOperations);
        }
        endDue = true;
        endCause = cause;
    }

    private void tellPong() {
        try {
            listener.onPong(this, control.answeredNonce());
        } catch (Throwable e) {
            threw(e);
        }
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
