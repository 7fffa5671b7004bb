package org.verbena.transport.spi;

import org.jspecify.annotations.Nullable;

/**
 * Receives that all endpoints of one completion loop and device draw from. Belongs to its loop's thread. A completion is reported to the
 * handler of the endpoint whose message consumed the receive; receives that nobody consumed are given up, without a completion, when the loop ends.
 */
public interface SharedReceiveQueue {

    /**
     * Stages a receive.
     *
     * @param workId comes back in the completion
     * @param buffers where a message goes
     * @return false if the queue is full
     */
    boolean postReceive(long workId, ScatterGatherList buffers);

    /** Gives what is staged to the device. */
    void flush();

    /**
     * How many receives it holds at the most.
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
     * What the owner of its buffers has hung on it.
     *
     * @return null at first
     */
    @Nullable Object attachment();

    /**
     * Hangs the owner of its buffers on it, for the next endpoint of this loop to find.
     *
     * @param attachment the owner; closed with the loop if it is {@link AutoCloseable}
     */
    void attach(Object attachment);
}
