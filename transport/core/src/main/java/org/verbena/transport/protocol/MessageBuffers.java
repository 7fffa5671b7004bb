package org.verbena.transport.protocol;

import io.netty.buffer.ByteBuf;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.spi.MemoryDomain;
import org.verbena.transport.spi.ScatterGatherList;

/**
 * Registered memory of one device, as the protocol uses it. Receiving and sending have budgets of their own, so that neither can starve the
 * other. Any thread.
 */
public interface MessageBuffers {

    /** Finds the buffers of a device. */
    @FunctionalInterface
    interface Source {
        /**
         * The buffers that lie in memory of this domain.
         *
         * @param domain an endpoint's memory domain
         * @return shared by all connections of that device
         */
        MessageBuffers forDomain(MemoryDomain domain);
    }

    /**
     * A buffer that messages are received into.
     *
     * @param capacityBytes its capacity, all of it writable
     * @return empty, one reference; null if the budget is spent for now
     * @throws org.verbena.transport.spi.RdmaException it is more than the whole budget, or the device refused to register more
     */
    @Nullable ByteBuf tryAllocateReceive(int capacityBytes);

    /**
     * Whether a connection may take more for its receives, for speed alone.
     *
     * @param moreBytes how much more
     * @return false if more than half of the budget for receiving would be in use
     */
    boolean isReceiveMemoryPlentiful(long moreBytes);

    /**
     * A buffer to send from.
     *
     * @param capacityBytes its capacity, all of it writable
     * @return empty, one reference; null if the budget is spent for now
     * @throws org.verbena.transport.spi.RdmaException it is more than the whole budget, or the device refused to register more
     */
    @Nullable ByteBuf tryAllocateSend(int capacityBytes);

    /**
     * Adds the registered memory behind a stretch of a buffer, through slices and composites, as far as it is registered in this domain and
     * the pieces suffice.
     *
     * @param buffer any buffer
     * @param index where to begin
     * @param lengthBytes how far to go, at the most
     * @param maxPieces how many pieces to add, at the most
     * @param into where they are added
     * @return bytes covered from {@code index} on; 0 if the first of them is not in registered memory
     */
    int gather(ByteBuf buffer, int index, int lengthBytes, int maxPieces, ScatterGatherList into);
}
