package org.verbena.transport.protocol;

import io.netty.buffer.ByteBuf;
import io.netty.util.ReferenceCounted;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.WorkStatus;

/**
 * The message protocol over one endpoint: give it to {@code RdmaProvider.connect} or {@code IncomingConnection.accept} as the handler, with
 * {@link #privateData(MessageOptions)} in the endpoint's options. It does no I/O, has no thread and no clock of its own: it calls the endpoint
 * and its listener, and is called on the endpoint's loop alone.
 *
 * <p>Operations are queued in the order given and go to the device in that order at {@link #flush()} at the latest; what the peer's credits, the
 * send queue or the read depth do not let go waits, goes on by itself, and never fails for it. Each operation's callback is called exactly once,
 * messages' in the order sent.
 */
@SuppressWarnings("DoNotCallSuggester") // the state machine behind it follows
public final class MessageConnection implements EndpointHandler {

    /** Who speaks first. */
    public enum Role {
        /** Called connect: says HELLO. */
        INITIATOR,
        /** Accepted: answers. */
        ACCEPTOR
    }

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
        throw new UnsupportedOperationException();
    }

    /**
     * What goes with a connect request or its acceptance as private data, so that the other end knows who it talks to.
     *
     * @param options how this end speaks
     * @return empty for RAW
     */
    public static byte[] privateData(MessageOptions options) {
        throw new UnsupportedOperationException();
    }

    /**
     * Whether a connect request is from a stranger. Accept if null, else {@code IncomingConnection.reject} with the answer.
     *
     * @param options how this end speaks
     * @param privateData what came with the request
     * @return null for a peer that speaks the same; else the reason as private data for the rejection
     */
    public static byte @Nullable [] rejection(MessageOptions options, byte[] privateData) {
        throw new UnsupportedOperationException();
    }

    /**
     * What a peer said in a rejection.
     *
     * @param privateData of {@code ConnectionException.Rejected}
     * @return words, or null if there are none of ours
     */
    public static @Nullable String rejectionReason(byte[] privateData) {
        throw new UnsupportedOperationException();
    }

    /**
     * The endpoint.
     *
     * @return null before the listener's {@code onPrepared}
     */
    public @Nullable Endpoint endpoint() {
        throw new UnsupportedOperationException();
    }

    /**
     * What was agreed.
     *
     * @return null before the listener's {@code onActive}
     */
    public @Nullable Negotiated negotiated() {
        throw new UnsupportedOperationException();
    }

    /**
     * Queues a message. It may be called before {@code onActive}. A message beyond the peer's limit fails with {@link MessageTooLargeException},
     * on a connection that is over with its cause. Success means that the peer's adapter has it all (verbs) or that it was handed to TCP (soft); it is
     * never a sign that the peer's program has seen it. Messages that go by rendezvous have arrived in the peer's memory.
     *
     * @param message from its reader index to its writer index; ownership is taken, also when it fails
     * @param callback hears the outcome
     * @param context given to the callback
     */
    public void send(ByteBuf message, OperationCallback callback, @Nullable Object context) {
        throw new UnsupportedOperationException();
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
        throw new UnsupportedOperationException();
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
        throw new UnsupportedOperationException();
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
        throw new UnsupportedOperationException();
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
        throw new UnsupportedOperationException();
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
        throw new UnsupportedOperationException();
    }

    /**
     * Sends what is queued, as far as it can go, with one call to the device. From within a callback it takes effect when the batch of completions is
     * over. Work goes on by itself when credits and slots come back.
     */
    public void flush() {
        throw new UnsupportedOperationException();
    }

    /**
     * Whether what is sent next goes out at once.
     *
     * @return false before {@code onActive}, while operations wait for credits or slots, and once closed
     */
    public boolean isWritable() {
        throw new UnsupportedOperationException();
    }

    /**
     * Messages that were queued and have no outcome yet.
     *
     * @return the sum of their bytes
     */
    public long queuedBytes() {
        throw new UnsupportedOperationException();
    }

    /**
     * Stops or resumes the delivery of messages; on at first. While it is off nothing is posted for further messages, so the peer runs out of credits
     * and stops. May be called from {@code onMessage}, and then no further message is delivered.
     *
     * @param reading whether to deliver
     * @return whether messages are waiting to be delivered: then {@link #deliverPending()} is to be called soon, from a task of the loop
     */
    public boolean setReading(boolean reading) {
        throw new UnsupportedOperationException();
    }

    /** Delivers messages that came while reading was off, then {@code onReadComplete}. Does nothing while it is off, or within a callback. */
    public void deliverPending() {
        throw new UnsupportedOperationException();
    }

    /**
     * Asks the peer for a sign of life; {@code onPong} follows. It passes queued messages and needs none of their credits.
     *
     * @param nonce comes back with the answer
     * @return false if an earlier ping is unanswered, or the connection is not active, or RAW: nothing is sent
     */
    public boolean ping(long nonce) {
        throw new UnsupportedOperationException();
    }

    /**
     * Closes in good order: what is queued is sent, then CLOSE; when the peer has answered, the connection is let go and {@code onInactive(null)} follows. What is
     * sent later fails. Idempotent.
     */
    public void close() {
        throw new UnsupportedOperationException();
    }

    /**
     * Ends it now. What is queued or under way fails with this cause when the device has let go of it; {@code onInactive} follows. Idempotent.
     *
     * @param cause told to everything that is pending; null for a plain close
     */
    public void abort(@Nullable Throwable cause) {
        throw new UnsupportedOperationException();
    }

    /**
     * Tells the time, for the handshake's, close's and keepalive's timeouts: call it when the endpoint has been made and again after the delay it
     * returns, until {@code onInactive}.
     *
     * @param nowNanos {@link System#nanoTime()}
     * @return nanoseconds until it wants to be called again, 1 or more
     */
    public long onTimer(long nowNanos) {
        throw new UnsupportedOperationException();
    }

    @Override
    public void onPrepared(Endpoint endpoint) {
        throw new UnsupportedOperationException();
    }

    @Override
    public void onConnected(Endpoint endpoint, byte[] privateData) {
        throw new UnsupportedOperationException();
    }

    @Override
    public void onSendCompletion(Endpoint endpoint, long workId, WorkStatus status, int lengthBytes) {
        throw new UnsupportedOperationException();
    }

    @Override
    public void onReceiveCompletion(
            Endpoint endpoint, long workId, WorkStatus status, int lengthBytes, int flags, int immediateData) {
        throw new UnsupportedOperationException();
    }

    @Override
    public void onCompletionsHandled(Endpoint endpoint) {
        throw new UnsupportedOperationException();
    }

    @Override
    public void onDisconnected(Endpoint endpoint, @Nullable Throwable cause) {
        throw new UnsupportedOperationException();
    }
}
