package org.verbena.transport.protocol.connection;

import io.netty.buffer.ByteBuf;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.protocol.Negotiated;

/**
 * Receives the events of a {@link MessageConnection}, always on its loop, never from within one of the connection's own
 * methods unless their description says so. An exception from a callback ends the connection and becomes its cause.
 *
 * <pre>{@code
 * onPrepared? -> onActive? -> (onMessage | onImmediate)* onEnd? onReadComplete ... onWritabilityChanged ...
 *     -> onInactive
 * }</pre>
 */
public interface MessageListener {

    /**
     * The endpoint exists, and its addresses and memory domain are known. At most once.
     *
     * @param connection the connection
     */
    default void onPrepared(MessageConnection connection) {}

    /**
     * The connection is established and both ends have agreed: messages may be sent. At most once.
     *
     * @param connection the connection
     * @param negotiated the agreed parameters
     */
    void onActive(MessageConnection connection, Negotiated negotiated);

    /**
     * A message arrived, in the order sent; with STREAM framing, the next bytes. On devices one that fits a receive is
     * the receive buffer itself, unless it is so small that keeping it would waste most of the buffer; soft and shm
     * copy it once, into memory of its size.
     *
     * @param connection the connection
     * @param message owned by the listener, which releases it; its memory then serves another receive
     */
    void onMessage(MessageConnection connection, ByteBuf message);

    /**
     * With STREAM framing: the peer will send nothing more, and everything that it has sent has been delivered. This
     * end may still send. At most once.
     *
     * @param connection the connection
     */
    default void onEnd(MessageConnection connection) {}

    /**
     * The available messages have been delivered: time to flush.
     *
     * @param connection the connection
     */
    void onReadComplete(MessageConnection connection);

    /**
     * The peer wrote into local memory with immediate data; or, with RAW framing, sent a message with it (this call,
     * then {@code onMessage}). In order with messages.
     *
     * @param connection the connection
     * @param immediateData the peer's 32 bits
     * @param lengthBytes how much it wrote
     */
    void onImmediate(MessageConnection connection, int immediateData, int lengthBytes);

    /**
     * With RAW framing: the peer sent a message that has invalidated a key of this end (this call, then {@code
     * onMessage}). In order with messages.
     *
     * @param connection the connection
     * @param remoteKey the key, which opens nothing any more
     */
    default void onInvalidated(MessageConnection connection, int remoteKey) {}

    /**
     * Credits ran out or came back, or a claim was refused. Also called from within {@link MessageConnection#flush()}
     * and {@code MessageClaims.tryClaim}.
     *
     * @param connection the connection
     * @param writable false: operations wait for the peer's credits or for slots of the send queue, or a claim was
     *     refused; true: none waits any more, and there is room for that claim
     */
    void onWritabilityChanged(MessageConnection connection, boolean writable);

    /**
     * The peer answered a ping.
     *
     * @param connection the connection
     * @param nonce the nonce of the ping
     */
    default void onPong(MessageConnection connection, long nonce) {}

    /**
     * The connection has an earlier deadline than before: call {@link MessageConnection#onDeadline} then. A later
     * deadline is not reported: a call that comes too early returns the new one.
     *
     * @param connection the connection
     * @param deadlineNanos {@link MessageConnection#nextDeadlineNanos()}
     */
    void onDeadline(MessageConnection connection, long deadlineNanos);

    /**
     * Memory that the connection waits for may be available: have the loop call {@link MessageConnection#resume()}. The
     * only callback on any thread, the one that released the memory; it must not block.
     *
     * @param connection the connection
     */
    void onResumable(MessageConnection connection);

    /**
     * The end. Exactly once and last: every operation's callback has been called, and all memory is released.
     *
     * @param connection the connection
     * @param cause null if either end closed the connection in good order; otherwise the first failure
     */
    void onInactive(MessageConnection connection, @Nullable Throwable cause);
}
