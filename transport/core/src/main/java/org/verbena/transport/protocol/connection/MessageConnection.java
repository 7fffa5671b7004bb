package org.verbena.transport.protocol.connection;

import io.netty.buffer.ByteBuf;
import java.lang.foreign.MemorySegment;
import java.net.InetSocketAddress;
import java.util.EnumSet;
import java.util.function.LongSupplier;
import java.util.function.LongUnaryOperator;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.Framing;
import org.verbena.transport.MessageClaims;
import org.verbena.transport.MessageStatistics;
import org.verbena.transport.MessageTooLargeException;
import org.verbena.transport.PreSharedKeys;
import org.verbena.transport.ProtocolException;
import org.verbena.transport.SendCompletion;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.protocol.Frame;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.Negotiated;
import org.verbena.transport.protocol.OperationCallback;
import org.verbena.transport.protocol.PrivateData;
import org.verbena.transport.protocol.Role;
import org.verbena.transport.protocol.TransferBudget;
import org.verbena.transport.protocol.framing.Framer;
import org.verbena.transport.protocol.memory.MessageBuffers;
import org.verbena.transport.protocol.receiving.Inbound;
import org.verbena.transport.protocol.sending.Operation;
import org.verbena.transport.protocol.sending.SendLedger;
import org.verbena.transport.protocol.state.Lifecycle.Phase;
import org.verbena.transport.protocol.state.Work;
import org.verbena.transport.protocol.wire.Wire;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.PeerAddress;
import org.verbena.transport.spi.WorkRequest;

/**
 * The message protocol over one endpoint: give it to {@code RdmaProvider.connect} or {@code IncomingConnection.accept}
 * as the handler, with {@link PrivateData} in the endpoint's options. It does no I/O and has neither a
 * thread nor a clock of its own: it calls the endpoint and its listener, and is called on the endpoint's loop only.
 *
 * <p>Operations are queued in the order given and go to the device in that order at {@link #flush()} at the latest;
 * what has to wait for the peer's credits, the send queue or the read depth continues by itself and never fails for
 * that reason. Each operation's callback is called exactly once, messages' in the order sent.
 *
 * <p>This class is the façade: its parts do the work, and it decides in which order. Every entry point changes the
 * parts first and ends with {@link #settle}; only that calls out.
 */
public final class MessageConnection implements EndpointHandler, MessageBuffers.Waiter {

    /** The value of {@link #nextDeadlineNanos()} when nothing is due. */
    public static final long NO_DEADLINE = Timeouts.NONE;

    private static final EnumSet<WorkRequest.Opcode> SENDS = EnumSet.of(
            WorkRequest.Opcode.SEND, WorkRequest.Opcode.SEND_WITH_IMMEDIATE, WorkRequest.Opcode.SEND_WITH_INVALIDATE);

    private final Role role;
    private final MessageOptions options;
    private final MessageBuffers.Source source;
    private final MessageListener listener;
    private final boolean raw;

    private final Parts parts;
    private final Ending ending;

    private TransferBudget.@Nullable Source budgets;

    /** The listener was notified of memory, and has not resumed yet. Written by any thread. */
    private volatile boolean resumable;

    /** Of the peer's address; written by the loop before it waits for memory. */
    private volatile long network = PeerAddress.UNKNOWN;

    private byte[] peerPrivateData = {};

    /** A frame came in this batch. */
    private boolean received;

    /**
     * Creates the connection of one endpoint.
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

    /**
     * Creates the connection of one endpoint, with the clock of its loop.
     *
     * @param role which end sends first
     * @param options the options of this end
     * @param buffers the source of registered memory
     * @param listener receives the events
     * @param nanoClock the times that this class is given and returns are its
     */
    public MessageConnection(
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
        parts = new Parts(this, role, options, listener, nanoClock);
        ending = new Ending(parts, raw, this::threw);
    }

    /**
     * Makes both ends prove a pre-shared key in the handshake. Until the peer has done so, this end sends it nothing
     * but the handshake, delivers nothing from it, and refuses its one-sided operations where the provider can. Call it
     * before the endpoint is made.
     *
     * @param keys an initiator proves the first of them; an acceptor accepts any
     * @throws IllegalArgumentException the framing is RAW, which has no handshake, or receives are too short for it
     */
    public void authenticate(PreSharedKeys keys) {
        parts.handshake.authenticate(keys);
    }

    /**
     * Makes long reads and writes, those of messages by rendezvous included, take turns with those of other connections
     * of this loop. Without this they go when the send queue and the read depth allow. Call it before the endpoint is
     * made.
     *
     * @param source finds the loop's budget for the endpoint's device
     */
    public void limitTransfers(TransferBudget.Source source) {
        budgets = source;
    }

    /**
     * Announces to the peer's program in the handshake which protocol this end's program speaks, and what it can do. A
     * peer whose program announces nothing is refused. Call it before the endpoint is made.
     *
     * @param features 8 bits, whose meaning is the programs' own
     * @throws IllegalArgumentException more than 8 bits
     */
    public void announce(int features) {
        if (features < 0 || features > 0xff) {
            throw new IllegalArgumentException("features 0x" + Integer.toHexString(features) + " of a program: 8 bits");
        }
        parts.handshake.announce(features);
    }

    /** {@return whether the peer has closed, so that nothing more is sent to it; false before {@code onActive}} */
    public boolean hasPeerClosed() {
        return parts.life.hasPeerClosed();
    }

    /**
     * What the peer's program announced.
     *
     * @return 8 bits; 0 before the listener's {@code onActive}, and with RAW
     */
    public int peerAnnounced() {
        return parts.handshake.peerAnnounced();
    }

    /**
     * When the message that is being delivered began to arrive: its first fragment, or its advertisement. For {@code
     * onMessage}.
     *
     * @param otherwise returned for a message that is delivered as it arrives
     * @return a time of its clock
     */
    public long arrivalNanos(long otherwise) {
        return parts.inbox.arrivalNanos(otherwise);
    }

    /**
     * The private data of this connection's connect request or acceptance. Call {@link #authenticate} first, if at all.
     *
     * @return empty for RAW
     */
    public byte[] privateData() {
        return parts.handshake.privateData();
    }

    /**
     * The private data of the peer's connect request or acceptance.
     *
     * @return a copy, possibly padded with zeros; empty before the listener's {@code onActive}
     */
    public byte[] peerPrivateData() {
        return peerPrivateData.clone();
    }

    /**
     * The endpoint.
     *
     * @return null before the listener's {@code onPrepared}
     */
    public @Nullable Endpoint endpoint() {
        return parts.peer.endpoint();
    }

    /**
     * Sets a listener for each frame, for debugging.
     *
     * @param value called for each frame from now on, on the loop; null for none
     */
    public void setFrameListener(Frame.@Nullable Listener value) {
        parts.tap.setListener(value);
    }

    /**
     * The agreed parameters.
     *
     * @return null before the listener's {@code onActive}
     */
    public @Nullable Negotiated negotiated() {
        return parts.handshake.negotiated();
    }

    /**
     * Queues a message; with STREAM framing, bytes of any number. It may be called before {@code onActive}. A message
     * above the peer's limit fails with {@link MessageTooLargeException}, and on a connection that has ended with the
     * connection's cause. Success means that the peer's adapter has all of it (verbs) or that TCP has taken it (soft),
     * or less with {@link MessageOptions#sendCompletion()}, not that the peer's program has seen it. Messages sent by
     * rendezvous have arrived in the peer's memory.
     *
     * @param message sent from its reader index to its writer index; this method takes ownership, also if it fails
     * @param callback called with the outcome
     * @param context passed to the callback
     */
    public void send(ByteBuf message, OperationCallback callback, @Nullable Object context) {
        send(parts.outbox.newOperation(Operation.Kind.MESSAGE, callback, context), message);
    }

    /**
     * Queues a message that cannot be sent: it fails in its turn, and nothing else does.
     *
     * @param cause what the callback gets, unless the connection has ended by then
     * @param callback called with the outcome, after those of everything sent before
     * @param context passed to the callback
     */
    public void fail(Throwable cause, OperationCallback callback, @Nullable Object context) {
        Operation operation = parts.outbox.newOperation(Operation.Kind.MESSAGE, callback, context);
        operation.totalBytes = 0;
        operation.remainingBytes = 0;
        operation.failure = cause;
        submit(operation);
    }

    private void submit(Operation operation) {
        if (!parts.outbox.submit(operation)) {
            settle(false);
        }
    }

    /**
     * Queues a message whose sending nobody waits for, as {@link #send} does: a request or a reply. With framing
     * MESSAGE its outcome is that of {@link SendCompletion#POSTED}, whatever the options say.
     *
     * @param message sent from its reader index to its writer index; this method takes ownership, also if it fails
     * @param callback called with the outcome
     * @param context passed to the callback
     */
    public void sendUnawaited(ByteBuf message, OperationCallback callback, @Nullable Object context) {
        Operation operation = parts.outbox.newOperation(Operation.Kind.MESSAGE, callback, context);
        operation.isUnawaited = options.framing() == Framing.MESSAGE;
        send(operation, message);
    }

    /** {@return how many frames of messages were sent since the last one came from the peer} */
    public int unansweredFrames() {
        return parts.credits.unanswered();
    }

    /**
     * Queues a message of RAW framing, as {@link #send} does, for a SEND of a certain kind. A kind that the device or
     * the peer does not support fails with an {@code UnsupportedOperationException}, and nothing else does. A fenced
     * message in registered memory is read from there when the reads and atomics before it are done; elsewhere it is
     * copied when it is posted.
     *
     * @param message sent from its reader index to its writer index; this method takes ownership, also if it fails
     * @param opcode {@code SEND}, {@code SEND_WITH_IMMEDIATE} or {@code SEND_WITH_INVALIDATE}
     * @param flags a mask of {@link WorkRequest#FENCE} and {@link WorkRequest#SOLICITED}
     * @param word the immediate data, or the peer's key to invalidate; else ignored
     * @param callback called with the outcome
     * @param context passed to the callback
     * @throws UnsupportedOperationException the framing is not RAW
     * @throws IllegalArgumentException another opcode, or other flags
     */
    public void sendRaw(
            ByteBuf message,
            WorkRequest.Opcode opcode,
            int flags,
            int word,
            OperationCallback callback,
            @Nullable Object context) {
        if (!raw || !SENDS.contains(opcode) || (flags & ~(WorkRequest.FENCE | WorkRequest.SOLICITED)) != 0) {
            message.release();
            if (!raw) {
                throw new UnsupportedOperationException(opcode + " needs framing RAW, not " + options.framing());
            }
            throw new IllegalArgumentException(opcode + " with flags " + flags + " is no kind of SEND");
        }
        Operation operation = parts.outbox.newOperation(Operation.Kind.MESSAGE, callback, context);
        operation.sendOpcode = opcode;
        operation.sendFlags = flags;
        operation.immediateData = word;
        operation.remoteKey = word;
        send(operation, message);
    }

    private void send(Operation operation, ByteBuf message) {
        operation.message = message;
        operation.index = message.readerIndex();
        operation.totalBytes = message.readableBytes();
        operation.remainingBytes = operation.totalBytes;
        boolean tooLarge =
                options.framing() != Framing.STREAM && operation.totalBytes > parts.handshake.maxOutboundBytes();
        operation.failure = tooLarge ? Framer.tooLarge(operation, parts.handshake.maxOutboundBytes()) : null;
        submit(operation);
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
        Operation operation = parts.outbox.newOperation(Operation.Kind.MESSAGE, callback, context);
        operation.end = true;
        operation.totalBytes = 0;
        operation.remainingBytes = 0;
        parts.outbox.submit(operation);
        parts.outbox.endOutput();
        flush();
    }

    /** {@return the reads, writes and atomics on the peer's memory} */
    public OneSided oneSided() {
        return parts.oneSided;
    }

    /**
     * Claims of room in the next frame: messages without callbacks.
     *
     * @return those of this connection; {@code onWritabilityChanged} is called from within {@code tryClaim} as well
     * @throws UnsupportedOperationException the framing is not MESSAGE
     */
    public MessageClaims claims() {
        return parts.claims(this);
    }

    /**
     * Sends what is queued, as far as possible, with one call to the device. From within a callback it takes effect at
     * the end of the batch of completions. Waiting work continues by itself when credits and slots come back.
     */
    public void flush() {
        settle(true);
    }

    /**
     * As {@link #flush()}, but what can go is given to the device before this returns, from within a callback as well:
     * for users that may be slow to return from a callback, or wait in it for the peer. It costs a call to the device
     * for each flush.
     */
    public void flushNow() {
        if (parts.settling.isWithin()) {
            postNow(true);
        }
        settle(true);
        Endpoint current = parts.peer.endpoint();
        if (current != null) {
            current.push();
        }
    }

    /** Posts what can go, without reporting anything. */
    void postNow(boolean flushes) {
        Endpoint current = parts.peer.endpoint();
        if (current == null || !parts.life.isUp()) {
            return;
        }
        try {
            if (parts.postAhead(current)) {
                parts.outflow.post(current);
            }
            if (flushes) {
                parts.outflow.flush(current);
            }
        } catch (Throwable e) {
            threw(e);
        }
    }

    /**
     * Whether the next message is sent without waiting.
     *
     * @return false before {@code onActive}, while operations wait for credits or slots, and once closed
     */
    public boolean isWritable() {
        return parts.outbox.isWritable();
    }

    /** {@return whether a claim was refused for want of room, and none was found since} */
    public boolean isClaimRefused() {
        return parts.isClaimRefused();
    }

    /** {@return the size of messages that are queued and have no outcome yet: the sum of their bytes} */
    public long queuedBytes() {
        return parts.outbox.queuedBytes();
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
        parts.inbox.setReading(reading);
        if (reading && parts.life.isAgreed()) {
            flush();
        }
        return reading && parts.inbox.hasReady();
    }

    /**
     * Delivers messages that arrived while reading was off, then calls {@code onReadComplete}. Does nothing while
     * reading is off, or within a callback.
     */
    public void deliverPending() {
        if (parts.settling.isWithin()) {
            return;
        }
        deliver();
        endLingering();
        settle(true);
    }

    /** All that the peer had sent has been read. */
    private void endLingering() {
        if (parts.life.is(Phase.LINGERING) && parts.inbox.isEmpty()) {
            ending.inactive(null);
        }
    }

    /**
     * Sends a ping; {@code onPong} follows. It overtakes queued messages and needs none of their credits.
     *
     * @param nonce returned with the answer
     * @return false if an earlier ping is unanswered, or the connection is not active, or RAW: nothing is sent
     */
    public boolean ping(long nonce) {
        if (!parts.life.is(Phase.ACTIVE) || raw || parts.control.isPinging()) {
            return false;
        }
        parts.timeouts.ping(nonce);
        flush();
        return true;
    }

    /**
     * Closes in good order: what is queued is sent, then CLOSE; when the peer has answered, the connection is
     * disconnected and {@code onInactive(null)} follows. Later sends fail. Idempotent.
     */
    public void close() {
        if (parts.life.isCloseRequested() || parts.life.is(Phase.ABORTED) || parts.life.is(Phase.INACTIVE)) {
            return;
        }
        parts.life.requestClose();
        parts.inbox.discard();
        if (parts.life.is(Phase.LINGERING)) {
            ending.inactive(parts.life.firstCause());
            settle(false);
        } else if (parts.life.isAgreed()) {
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
        if (parts.life.is(Phase.INACTIVE)) {
            return;
        }
        if (parts.life.is(Phase.LINGERING)) {
            parts.life.keepCause(cause);
            ending.inactive(parts.life.firstCause());
            settle(false);
            return;
        }
        parts.life.abort(cause);
        parts.peer.disconnect();
    }

    /**
     * When to call {@link #onDeadline}: for the timeouts of handshake, messages and close, and for keepalive. An idle
     * connection without keepalive has no deadline. {@link MessageListener#onDeadline} is called when it gets earlier.
     *
     * @return a time of its clock, or {@link #NO_DEADLINE}
     */
    public long nextDeadlineNanos() {
        return parts.timeouts.nextNanos();
    }

    /**
     * Handles deadlines: call it when {@link #nextDeadlineNanos()} has come. Calling it early does no harm.
     *
     * @param nowNanos the time of its clock
     */
    public void onDeadline(long nowNanos) {
        parts.timeouts.ring();
        if (Timeouts.isDue(parts.timeouts.nextNanos(), nowNanos)) {
            parts.timeouts.endRetry(nowNanos);
            Throwable late = parts.timeouts.check(nowNanos);
            if (late != null) {
                abort(late);
            }
        }
        if (parts.life.is(Phase.LINGERING)) {
            resume();
        } else {
            settle(true);
        }
    }

    @Override
    public long network() {
        return network;
    }

    @Override
    public void onMemoryFreed() {
        if (!resumable) {
            resumable = true;
            try {
                listener.onResumable(this);
            } catch (Error refused) {
                resumable = false; // the next to free memory may ask again
                throw refused;
            }
        }
    }

    /** Continues after {@link MessageListener#onResumable}. The loop's thread only. */
    public void resume() {
        resumable = false;
        if (parts.settling.isWithin()) {
            parts.settling.pumpAgain();
            return;
        }
        deliver();
        endLingering();
        settle(true);
    }

    /** Moves fragments into memory that may be there now, and delivers what is ready, as far as the user reads. */
    private void deliver() {
        boolean outer = parts.settling.enter();
        try {
            if (!parts.inbox.isEmpty()) {
                if (parts.life.isUp() || parts.life.is(Phase.LINGERING)) {
                    parts.inbox.assemble();
                }
                parts.askAgainForMemory(this);
                parts.inbox.deliverReady();
            }
            parts.inbox.readComplete();
        } catch (Throwable e) {
            threw(e);
        } finally {
            parts.settling.leave(outer);
        }
    }

    /** The peer can do nothing about what this side lacks, except try again later. */
    @Override
    public byte[] rejection(Endpoint endpoint) {
        return raw ? new byte[0] : Wire.rejection("the server cannot serve another connection now");
    }

    // Setting up.

    @Override
    public void onPrepared(Endpoint endpoint) {
        parts.peer.setEndpoint(endpoint);
        if (parts.life.is(Phase.ABORTED)) {
            endpoint.disconnect();
            return;
        }
        boolean outer = parts.settling.enter();
        try {
            InetSocketAddress remote = endpoint.remoteAddress();
            if (remote != null && remote.getAddress() != null) {
                network = PeerAddress.networkOf(remote.getAddress());
            }
            parts.prepare(endpoint, source.forDomain(endpoint.memoryDomain()), budgets, role);
            listener.onPrepared(this);
        } catch (Throwable e) {
            threw(e);
        } finally {
            parts.settling.leave(outer);
        }
        endpoint.flush();
        settle(false);
    }

    @Override
    public void onConnected(Endpoint endpoint, byte[] privateData) {
        if (parts.life.is(Phase.ABORTED)) {
            return;
        }
        parts.life.connected();
        peerPrivateData = privateData;
        parts.learn(endpoint.capabilities());
        String violation = raw || role == Role.ACCEPTOR ? null : Wire.violation(options.framing(), privateData);
        if (violation != null) {
            abort(new ProtocolException(parts.peer + " accepted the connection but is " + violation
                    + ": use the framing that it speaks, RAW for programs that are not Verbena's"));
            return;
        }
        String refusal = role == Role.ACCEPTOR ? null : parts.handshake.takeAcceptance(privateData);
        if (refusal != null) {
            abort(ending.refused(refusal));
            return;
        }
        parts.handshake.begin();
        agree(endpoint);
        if (!parts.settling.isInBatch()) {
            deliver();
            settle(true);
        }
    }

    void agree(Endpoint endpoint) {
        Negotiated agreed = parts.handshake.agree(endpoint);
        if (agreed != null) {
            parts.outbox.updateWritable(false);
            boolean outer = parts.settling.enter();
            parts.callbacks.active(agreed);
            parts.settling.leave(outer);
        }
    }

    // Completions: they come in batches, and the end of a batch settles.

    @Override
    public void onSendCompletion(Endpoint endpoint, long workId, WorkStatus status, int lengthBytes) {
        parts.settling.beginBatch();
        if (workId == SendLedger.UNTRACKED) {
            workFailed("a frame", status);
            return;
        }
        if (!parts.ledger.isNext(workId)) {
            abort(new IllegalStateException("the provider completed work " + workId
                    + ", which is not next: completions must come in the order posted"));
            return;
        }
        Work owner = parts.ledger.take();
        if (owner instanceof Operation first) {
            parts.outbox.completed(first, parts.ledger.takenMessages(), status);
        } else if (owner instanceof Inbound inbound) {
            if (status != WorkStatus.SUCCESS) {
                workFailed("read of a message of " + inbound.totalBytes + " bytes that the peer advertised", status);
            }
            if (parts.rendezvous.completed(inbound, status) && parts.life.isCloseRequested()) {
                parts.inbox.discard();
            }
        } else {
            workFailed("a frame", status);
        }
    }

    @Override
    public void onReceiveCompletion(
            Endpoint endpoint, long workId, WorkStatus status, int lengthBytes, int flags, int immediateData) {
        parts.settling.beginBatch();
        ByteBuf buffer = parts.window.take(workId);
        if (buffer == null) {
            abort(new IllegalStateException("the provider completed receive " + workId + ", which is not posted"));
            return;
        }
        if (status != WorkStatus.SUCCESS) {
            workFailed("receive of up to " + buffer.capacity() + " bytes", status);
            buffer.release();
            return;
        }
        frameCame();
        if (parts.life.is(Phase.ABORTED)) {
            buffer.release();
            return;
        }
        try {
            parts.frameReceiver.received(buffer, lengthBytes, flags, immediateData);
            agree(endpoint);
        } catch (Throwable e) {
            threw(e);
        }
    }

    @Override
    public boolean onMessage(Endpoint endpoint, MemorySegment memory, long offsetBytes, int lengthBytes) {
        parts.settling.beginBatch();
        try {
            if (!parts.frameReceiver.tryTake(memory, offsetBytes, lengthBytes)) {
                return false;
            }
            frameCame(); // before a callback may ask
            parts.frameReceiver.deliverTaken(lengthBytes);
        } catch (Throwable e) {
            parts.frameReceiver.dropTaken();
            threw(e);
        }
        return true;
    }

    private void frameCame() {
        parts.counters.frameReceived();
        received = true;
    }

    /** A frame of the peer's is wrong. */
    void violated(String violation) {
        abort(ending.violation(violation));
    }

    @Override
    public void onCompletionsHandled(Endpoint endpoint) {
        boolean pumping = received || !parts.isAtRest();
        if (received) {
            received = false;
            parts.timeouts.frameReceived();
        }
        deliver();
        parts.settling.endBatch();
        settle(pumping);
    }

    void workFailed(String what, WorkStatus status) {
        if (status != WorkStatus.SUCCESS && status != WorkStatus.FLUSHED) {
            parts.life.workFailed(parts.peer, what, status);
        }
    }

    // The pump: whatever can go, goes, with one call to the device for receives and one for the rest.

    void settle(boolean pumping) {
        parts.settling.settle(pumping);
    }

    void pump() {
        Endpoint current = parts.peer.endpoint();
        if (current == null || !parts.life.isUp()) {
            parts.transfers.leave();
            return;
        }
        try {
            pump(current);
        } catch (Throwable e) {
            threw(e);
        }
    }

    private void pump(Endpoint endpoint) {
        boolean isDelivering = !parts.inbox.isEmpty();
        boolean isClosing = parts.life.isClosing();
        if (parts.postAhead(endpoint)) {
            if (isDelivering) {
                parts.rendezvous.post(endpoint, parts.life.isCloseRequested());
                if (parts.inbox.assemble()) { // what came behind a message that has its memory now
                    parts.settling.pumpAgain();
                    onMemoryFreed(); // delivered by a task: this may be within a call of the user's
                }
            }
            if (isClosing && parts.life.hasPeerClosed()) {
                parts.outbox.giveUpWaiting();
            }
            parts.outflow.post(endpoint);
            if ((isClosing || parts.header.hasChanged()) && !raw) {
                parts.control.post(endpoint);
            }
        }
        if (parts.outflow.flush(endpoint) && (isClosing || !parts.outbox.isNoneWaiting())) {
            parts.settling.pumpAgain(); // CLOSE, or what waited for their memory
        }
        if (isDelivering || parts.window.isDue()) {
            parts.askAgainForMemory(this);
        }
        parts.counters.queued(parts.outbox.queuedBytes());
        if (isClosing) {
            ending.finishClose(endpoint);
        }
        if (parts.life.isAgreed() && parts.outbox.updateWritable(parts.areClaimsHeldUp())) {
            parts.callbacks.writabilityChanged(parts.outbox.isWritable());
        }
    }

    // The end.

    /** An exception of a callback or of the provider ends the connection. The first error is rethrown when settled. */
    void threw(Throwable failure) {
        abort(failure);
        parts.settling.keep(failure);
    }

    @Override
    public void onDisconnected(Endpoint endpoint, @Nullable Throwable cause) {
        parts.settling.endBatch();
        if (parts.life.isDisconnected()) {
            return;
        }
        boolean agreed = parts.life.isAgreed();
        Throwable why = ending.disconnected(endpoint, cause);
        if (agreed) {
            deliver();
        }
        if (!ending.lingers() || parts.inbox.isEmpty()) {
            ending.inactive(why);
        }
        settle(false);
    }

    /**
     * Counts what its owner has queued for it as well. Any thread.
     *
     * @param all gets the bytes that are queued here, returns all; any thread calls it, and it must not block
     */
    public void queue(LongUnaryOperator all) {
        parts.counters.queue(all);
    }

    /** {@return its counters, which may lag slightly, and not all by the same amount} Any thread. */
    public MessageStatistics statistics() {
        return parts.counters.snapshot();
    }

    /**
     * Copies its counters, without allocating. Any thread.
     *
     * @param into gets the components of {@link MessageStatistics} in their order
     * @return since when messages wait for the peer's credits, {@link System#nanoTime()}, or 0
     */
    public long copyStatistics(long[] into) {
        return parts.counters.copyTo(into);
    }

    /** {@return the phase, as {@code docs/architecture.md} has them; the same string each time} Loop only. */
    public String phase() {
        return parts.life.phase().name();
    }

    /** For tests: this end behaves like a release without frames of several messages. Before it is prepared. */
    void packNothing() {
        parts.handshake.packNothing();
    }

    /** For tests: message frames that may be sent now. */
    int creditsAvailable() {
        return parts.credits.available();
    }

    @Override
    public String toString() {
        return "MessageConnection[" + role + " " + parts + "]";
    }
}
