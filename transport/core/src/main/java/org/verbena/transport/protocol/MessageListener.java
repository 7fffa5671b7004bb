package org.verbena.transport.protocol;

import io.netty.buffer.ByteBuf;
import org.jspecify.annotations.Nullable;

/**
 * Hears what a {@link MessageConnection} has to tell, always on its loop, never from within one of the connection's own methods unless their
 * description says so. What a callback throws ends the connection with it as the cause.
 *
 * <pre>{@code
 * onPrepared? -> onActive? -> (onMessage | onImmediate)* onEnd? onReadComplete ... onWritabilityChanged ... -> onInactive
 * }</pre>
 */
public interface MessageListener {

    /**
     * The endpoint is there and its addresses and memory domain are known. At most once.
     *
     * @param connection the connection
     */
    default void onPrepared(MessageConnection connection) {}

    /**
     * The connection is up and both ends agree: messages may be sent. At most once.
     *
     * @param connection the connection
     * @param negotiated what was agreed
     */
    void onActive(MessageConnection connection, Negotiated negotiated);

    /**
     * A message came, in the order sent; with STREAM framing, the next bytes. Where it fits one receive, it is the receive buffer itself, unless it is so small
     * that keeping it would waste most of the buffer.
     *
     * @param connection the connection
     * @param message the receiver owns it and releases it; its memory then serves another receive
     */
    void onMessage(MessageConnection connection, ByteBuf message);

    /**
     * With STREAM framing: the peer will send nothing more, and all that it has sent has been delivered. This end may go on sending. At most
     * once.
     *
     * @param connection the connection
     */
    default void onEnd(MessageConnection connection) {}

    /**
     * The messages that were at hand have been delivered: time to flush.
     *
     * @param connection the connection
     */
    void onReadComplete(MessageConnection connection);

    /**
     * The peer wrote into our memory with immediate data; or, with RAW framing, sent a message with it (this call, then {@code onMessage}).
     * In order with messages.
     *
     * @param connection the connection
     * @param immediateData the peer's 32 bits
     * @param lengthBytes how much it wrote
     */
    void onImmediate(MessageConnection connection, int immediateData, int lengthBytes);

    /**
     * Credit ran out or came back. Also called from within {@link MessageConnection#flush()}.
     *
     * @param connection the connection
     * @param writable false: operations wait for the peer's credits or for slots of the send queue; true: none wait any more
     */
    void onWritabilityChanged(MessageConnection connection, boolean writable);

    /**
     * The peer answered a ping.
     *
     * @param connection the connection
     * @param nonce what was sent along
     */
    default void onPong(MessageConnection connection, long nonce) {}

    /**
     * The connection wants to be called at another time than it said before: {@link MessageConnection#onDeadline} is due then. A deadline that is
     * put off is not told: who is called too early learns the new one.
     *
     * @param connection the connection
     * @param deadlineNanos {@link MessageConnection#nextDeadlineNanos()}
     */
    void onDeadline(MessageConnection connection, long deadlineNanos);

    /**
     * Memory that the connection waits for may be there: have the loop call {@link MessageConnection#resume()}. The one callback that comes on
     * any thread, from whoever released the memory; it must not block.
     *
     * @param connection the connection
     */
    void onResumable(MessageConnection connection);

    /**
     * The end. Exactly once and last: every operation's callback has been called, all memory is free.
     *
     * @param connection the connection
     * @param cause null if either end closed in good order; else the first thing that went wrong
     */
    void onInactive(MessageConnection connection, @Nullable Throwable cause);
}
