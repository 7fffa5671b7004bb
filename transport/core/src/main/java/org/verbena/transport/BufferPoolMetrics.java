package org.verbena.transport;

/**
 * A snapshot of a pool's counters and contents. The byte counts add up: {@code registeredBytes = usedBytes +
 * cachedBytes + freeBytes}, except for changes while they are read.
 *
 * @param registeredBytes memory registered for the pool's chunks
 * @param maxRegisteredBytes the limit in force
 * @param chunks the number of those chunks
 * @param usedBytes blocks in use by buffers, by the length of the blocks; buffers that another thread released and the
 *     owning loop has not collected yet count as used
 * @param cachedBytes free blocks in the caches of event loops
 * @param freeBytes the rest: free for any size
 * @param allocations buffers handed out so far
 * @param releases buffers returned so far
 * @param grows buffers that moved to a larger block
 * @param refusals allocations that failed at the limit or were refused by the device
 * @param exhaustedBuffers plain buffers that the allocator returned instead
 * @param oversizeBuffers plain buffers that the allocator returned because they exceed {@code
 *     BufferPoolOptions.largestPooledBytes()}
 * @param plainBytes the current size of those plain buffers
 * @param chunksRegistered chunks registered so far
 * @param chunksReleased chunks deregistered and freed so far
 */
public record BufferPoolMetrics(
        long registeredBytes,
        long maxRegisteredBytes,
        int chunks,
        long usedBytes,
        long cachedBytes,
        long freeBytes,
        long allocations,
        long releases,
        long grows,
        long refusals,
        long exhaustedBuffers,
        long oversizeBuffers,
        long plainBytes,
        long chunksRegistered,
        long chunksReleased) {

    /** The metrics of an unused pool. */
    public static final BufferPoolMetrics NONE = new BufferPoolMetrics(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);

    /**
     * Adds the metrics of another pool.
     *
     * @param other what to add
     * @return the sum, member by member
     */
    public BufferPoolMetrics plus(BufferPoolMetrics other) {
        return new BufferPoolMetrics(
                registeredBytes + other.registeredBytes,
                maxRegisteredBytes + other.maxRegisteredBytes,
                chunks + other.chunks,
                usedBytes + other.usedBytes,
                cachedBytes + other.cachedBytes,
                freeBytes + other.freeBytes,
                allocations + other.allocations,
                releases + other.releases,
                grows + other.grows,
                refusals + other.refusals,
                exhaustedBuffers + other.exhaustedBuffers,
                oversizeBuffers + other.oversizeBuffers,
                plainBytes + other.plainBytes,
                chunksRegistered + other.chunksRegistered,
                chunksReleased + other.chunksReleased);
    }
}
