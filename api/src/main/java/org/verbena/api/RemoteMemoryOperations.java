package org.verbena.api;

import io.netty.buffer.ByteBuf;
import io.netty.util.concurrent.Future;
import org.verbena.transport.spi.EndpointCapabilities;
import org.verbena.transport.spi.RegisteredMemory;
import org.verbena.transport.spi.RemoteMemory;

/**
 * One-sided operations: the peer's adapter reads and writes the peer's memory, and its program takes no part.
 *
 * <p>They go out at once, after what was flushed before them, and need no flush. Any thread may call them. The buffers
 * are retained until the outcome, also when the future is cancelled; the caller keeps its own reference and leaves
 * their content alone until then. Their indices count as they are when the call is made. Bounds and rights of the token
 * are checked before anything goes to the device. Whatever is wrong, with the arguments too, is the failure of the
 * future: the calls throw nothing. More reads than {@link RdmaChannelOption#READ_DEPTH} queue.
 */
public sealed interface RemoteMemoryOperations permits AbstractRdmaChannel {
    /**
     * Reads the peer's memory.
     *
     * @param from a token that allows REMOTE_READ
     * @param offsetBytes where to begin, from the start of the token
     * @param into filled in this order, each from its writer index to its capacity; the writer indices move when it has
     *     succeeded
     * @return done when all of it is there. Fails with IndexOutOfBoundsException or IllegalArgumentException against
     *     the token, with {@link RemoteAccessException} if the peer refuses
     */
    Future<Void> read(RemoteMemory from, long offsetBytes, ByteBuf... into);

    /**
     * Reads the peer's memory into registered memory of this side.
     *
     * @param from a token that allows REMOTE_READ
     * @param offsetBytes where to begin, from the start of the token
     * @param into registered with LOCAL_WRITE, and with REMOTE_WRITE if {@link
     *     EndpointCapabilities#readSinkNeedsRemoteWrite()}
     * @param intoOffsetBytes where to put it
     * @param lengthBytes how much to read
     * @return done when all of it is there; fails as {@link #read(RemoteMemory, long, ByteBuf...)} does
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
     * @return done when the write has completed. Fails with IndexOutOfBoundsException or IllegalArgumentException
     *     against the token, with {@link RemoteAccessException} if the peer refuses
     */
    Future<Void> write(RemoteMemory to, long offsetBytes, ByteBuf... from);

    /**
     * Writes the peer's memory out of registered memory of this side.
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
     * Writes the peer's memory and makes sure that it is there: a write, and a read of its last byte behind it, which
     * the peer's adapter answers only after it has placed what came before. Then the peer's program sees it too.
     *
     * @param to a token that allows REMOTE_WRITE and REMOTE_READ
     * @param offsetBytes where to begin, from the start of the token
     * @param from at least one byte, gathered as in {@link #write(RemoteMemory, long, ByteBuf...)}
     * @return done when the bytes are in the peer's memory
     */
    Future<Void> flushingWrite(RemoteMemory to, long offsetBytes, ByteBuf... from);

    /**
     * Writes the peer's memory and tells its pipeline, with an {@link ImmediateDataEvent}, in order with messages.
     *
     * @param to a token that allows REMOTE_WRITE
     * @param offsetBytes where to begin, from the start of the token
     * @param immediateData 32 bits for the peer
     * @param from gathered as in {@link #write(RemoteMemory, long, ByteBuf...)}; may be none
     * @return done when the write has completed; fails with UnsupportedOperationException where adapter or peer have no
     *     immediate data (iWARP without RFC 7306)
     */
    Future<Void> writeWithImmediate(RemoteMemory to, long offsetBytes, int immediateData, ByteBuf... from);

    /**
     * Swaps 8 bytes of the peer's memory if they equal what is expected, atomically towards the adapter's other
     * atomics. The bytes are a number in the peer's byte order.
     *
     * @param at a token that allows REMOTE_ATOMIC
     * @param offsetBytes where, from the start of the token; the address must be a multiple of 8
     * @param expected swap only if the old value equals this
     * @param value the new value
     * @return the old value; fails with UnsupportedOperationException where adapter or peer have no atomics
     */
    Future<Long> compareAndSwap(RemoteMemory at, long offsetBytes, long expected, long value);

    /**
     * Adds to 8 bytes of the peer's memory, atomically towards the adapter's other atomics. The bytes are a number in
     * the peer's byte order.
     *
     * @param at a token that allows REMOTE_ATOMIC
     * @param offsetBytes where, from the start of the token; the address must be a multiple of 8
     * @param add what to add; wraps
     * @return the old value; fails with UnsupportedOperationException where adapter or peer have no atomics
     */
    Future<Long> fetchAndAdd(RemoteMemory at, long offsetBytes, long add);
}
