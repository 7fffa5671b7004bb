package org.verbena.transport.spi;

import org.jspecify.annotations.Nullable;
import org.verbena.transport.MemoryDomain;

/**
 * Receives that all endpoints of one completion loop and device share. Belongs to its loop's thread. A completion is
 * reported to the handler of the endpoint whose message consumed the receive; receives that were not consumed are
 * dropped, without a completion, when the loop ends.
 */
public interface SharedReceiveQueue {

    /**
     * Stages a receive.
     *
     * @param workId returned in the completion
     * @param buffers the memory to receive into
     * @return false if the queue is full
     */
    boolean postReceive(long workId, ScatterGatherList buffers);

    /** Gives everything staged to the device. */
    void flush();

    /**
     * The largest number of receives that it holds.
     *
     * @return its depth
     */
    int depth();

    /**
     * Where its memory is registered.
     *
     * @return the device's domain
     */
    MemoryDomain memoryDomain();

    /**
     * The object that the owner of its buffers has attached.
     *
     * @return null at first
     */
    @Nullable Object attachment();

    /**
     * Attaches the owner of its buffers, for the next endpoint of this loop to find.
     *
     * @param attachment the owner; closed with the loop if it is {@link AutoCloseable}
     */
    void attach(Object attachment);
}
