package org.verbena.api;

import io.netty.buffer.ByteBuf;
import io.netty.util.concurrent.Future;
import org.verbena.transport.EndpointCapabilities;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.RemoteMemory;

/**
 * One-sided operations: the peer's adapter reads and writes the peer's memory, without the peer's program.
 *
 * <p>They are posted at once, after everything that was flushed before them, and need no flush. They may be called on
 * any thread. Buffers are retained until the operation has completed, even if the future is cancelled; the caller keeps
 * its own reference and must not change the content until then. The indices of the buffers are read during the call.
 * The bounds and rights of the token are checked before anything is posted to the device. The calls throw nothing:
 * invalid arguments, too, fail the future. Reads beyond {@link RdmaChannelOption#READ_DEPTH} are queued.
 */
public sealed interface RemoteMemoryOperations permits AbstractRdmaChannel {
    /**
     * Reads the peer's memory.
     *
     * @param from a token that allows REMOTE_READ
     * @param offsetBytes where to begin, from the start of the token
     * @param into filled in this order, each from its writer index to its capacity; the writer indices move when the
     *     read has succeeded
     * @return done when all bytes are there. Fails with IndexOutOfBoundsException or IllegalArgumentException if the
     *     token does not cover the range or the right, with {@link RemoteAccessException} if the peer refuses
     */
    Future<Void> read(RemoteMemory from, long offsetBytes, ByteBuf... into);

    /**
     * Reads the peer's memory into registered memory of this end.
     *
     * @param from a token that allows REMOTE_READ
     * @param offsetBytes where to begin, from the start of the token
     * @param into registered with LOCAL_WRITE, and with REMOTE_WRITE if {@link
     *     EndpointCapabilities#readSinkNeedsRemoteWrite()}
     * @param intoOffsetBytes where to put it
     * @param lengthBytes how much to read
     * @return done when all bytes are there; fails as {@link #read(RemoteMemory, long, ByteBuf...)} does
     */
    Future<Void> read(
            RemoteMemory from, long offsetBytes, RegisteredMemory into, long intoOffsetBytes, int lengthBytes);

    /**
     * Writes the peer's memory. Success means that the peer's adapter has acknowledged it, not that the peer's program
     * can see it: for that, send a message afterwards, use immediate data, or {@link #flushingWrite}.
     *
     * @param to a token that allows REMOTE_WRITE
     * @param offsetBytes where to begin, from the start of the token
     * @param from gathered in this order, each from its reader index to its writer index; the indices stay
     * @return done when the write has completed. Fails with IndexOutOfBoundsException or IllegalArgumentException if
     *     the token does not cover the range or the right, with {@link RemoteAccessException} if the peer refuses
     */
    Future<Void> write(RemoteMemory to, long offsetBytes, ByteBuf... from);

    /**
     * Writes the peer's memory from registered memory of this end.
     *
     * @param to a token that allows REMOTE_WRITE
     * @param offsetBytes where to begin, from the start of the token
     * @param from any registered memory
     * @param fromOffsetBytes where it begins
     * @param lengthBytes how much to write
     * @return done when the write has completed; fails as {@link #write(RemoteMemory, long, ByteBuf...)} does
     */
    Future<Void> write(RemoteMemory to, long offsetBytes, RegisteredMemory from, long fromOffsetBytes, int lengthBytes);

    /**
     * Writes the peer's memory so that the peer's program sees the bytes once this completes: a read of the last byte
     * follows the write, and the peer's adapter answers it only after it has placed the written bytes.
     *
     * @param to a token that allows REMOTE_WRITE and REMOTE_READ
     * @param offsetBytes where to begin, from the start of the token
     * @param from at least one byte, gathered as in {@link #write(RemoteMemory, long, ByteBuf...)}
     * @return done when the bytes are in the peer's memory
     */
    Future<Void> flushingWrite(RemoteMemory to, long offsetBytes, ByteBuf... from);

    /**
     * Writes the peer's memory and fires an {@link ImmediateDataEvent} in the peer's pipeline, in order with messages.
     *
     * @param to a token that allows REMOTE_WRITE
     * @param offsetBytes where to begin, from the start of the token
     * @param immediateData 32 bits for the peer
     * @param from gathered as in {@link #write(RemoteMemory, long, ByteBuf...)}; may be none
     * @return done when the write has completed; fails with UnsupportedOperationException if this adapter or the
     *     peer's does not support immediate data (iWARP without RFC 7306)
     */
    Future<Void> writeWithImmediate(RemoteMemory to, long offsetBytes, int immediateData, ByteBuf... from);

    /**
     * Replaces 8 bytes of the peer's memory if they equal the expected value, atomically with respect to the adapter's
     * other atomics. The bytes are a number in the peer's byte order.
     *
     * @param at a token that allows REMOTE_ATOMIC
     * @param offsetBytes where, from the start of the token; the address must be a multiple of 8
     * @param expected swap only if the old value equals this
     * @param value the new value
     * @return the old value; fails with UnsupportedOperationException if this adapter or the peer's has no atomics
     */
    Future<Long> compareAndSwap(RemoteMemory at, long offsetBytes, long expected, long value);

    /**
     * Adds to 8 bytes of the peer's memory, atomically with respect to the adapter's other atomics. The bytes are a
     * number in the peer's byte order.
     *
     * @param at a token that allows REMOTE_ATOMIC
     * @param offsetBytes where, from the start of the token; the address must be a multiple of 8
     * @param add what to add; wraps
     * @return the old value; fails with UnsupportedOperationException if this adapter or the peer's has no atomics
     */
    Future<Long> fetchAndAdd(RemoteMemory at, long offsetBytes, long add);
}
