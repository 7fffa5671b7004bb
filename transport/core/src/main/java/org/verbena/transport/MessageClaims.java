package org.verbena.transport;

import io.netty.buffer.ByteBuf;

/**
 * Short messages without promises, at the rate that frames allow: the program claims room for a message in the next
 * frame, writes the message there, and commits it. Nothing is allocated, queued or reported for such a message, and
 * messages that are committed before a {@link #flush()} share frames of up to 128 messages and nearly 16 KiB; on
 * devices, once the peer has posted receives of that length.
 *
 * <pre>{@code
 * if (claims.tryClaim(16) == MessageClaims.Outcome.CLAIMED) {
 *     claims.buffer().writeLong(key).writeLong(value);
 *     claims.commit();
 * }
 * claims.flush();
 * }</pre>
 *
 * <p><b>Order.</b> Messages arrive in the order of commits and ordinary sends. The peer's program sees no difference
 * between them. A peer of a release without frames of several messages gets a frame for each.
 *
 * <p><b>One claim</b> at a time is open. It holds nothing back: when its frame goes before it is committed, it goes in
 * the next.
 *
 * <p><b>Outcome.</b> A committed message is sent before a {@code close()} completes, as any other. If the connection is
 * lost, or the peer closes it, committed messages may be lost as well, without a report of their own. A program that
 * must know what has arrived asks for replies.
 *
 * <p>All methods must be called on the connection's event loop.
 */
public interface MessageClaims {

    /** What became of a try to claim room. */
    enum Outcome {
        /** There is room: fill {@link #buffer()}, then commit or abort. */
        CLAIMED,
        /**
         * There is no room now, since the peer accepts nothing more, or memory for frames is spent: nothing was
         * claimed. The connection becomes writable, and reports that, when it is worth trying again.
         */
        BACK_PRESSURED,
        /** The connection is closing or closed: nothing can be claimed any more. */
        CLOSED
    }

    /**
     * The longest message that can be claimed; longer ones are sent in other ways.
     *
     * @return bytes, at most 15,872, and no more than the peer's longest receive; 0 before both ends have agreed
     */
    int maxBytes();

    /**
     * Tries to claim room for a message. If the frame before is full, this gives it to the device. If there is no room,
     * this flushes.
     *
     * @param lengthBytes the most bytes that the message will have, 0 or more
     * @return whether {@link #buffer()} is open now
     * @throws MessageTooLargeException more than {@link #maxBytes()}
     * @throws IllegalArgumentException a negative length
     * @throws IllegalStateException another claim is open
     */
    Outcome tryClaim(int lengthBytes);

    /**
     * The room that was claimed: empty, with a capacity of what was asked for. It may contain bytes of earlier
     * messages.
     *
     * @return the same object for each claim; owned by the connection. It can be used until the claim is committed or
     *     aborted, or the connection ends, and throws an {@code IllegalReferenceCountException} at other times.
     *     Retaining and releasing it have no effect
     */
    ByteBuf buffer();

    /**
     * Commits the open claim: the message has the buffer's bytes from index 0 to its writer index, and goes at {@link
     * #flush()} at the latest.
     *
     * @return false if the connection has been closed since the claim: the message is not sent
     * @throws IllegalStateException no claim is open
     */
    boolean commit();

    /** Gives the room of the open claim back. Does nothing if none is open. */
    void abort();

    /** Sends what was committed, as far as the peer accepts it. What has to wait continues by itself. */
    void flush();
}
