package org.verbena.transport.buffer;

/**
 * What a pool has done and holds, at one moment. The byte counts add up: {@code registeredBytes = usedBytes + cachedBytes + freeBytes}, but for
 * what changes while they are read.
 *
 * @param registeredBytes memory registered for the pool's chunks
 * @param maxRegisteredBytes the limit in force
 * @param chunks how many chunks that is
 * @param usedBytes blocks that buffers live in, by the length of the blocks; buffers that another thread released and the owning loop has not
 *     collected yet count as used
 * @param cachedBytes free blocks that event loops keep for themselves
 * @param freeBytes the rest: free for any size
 * @param allocations buffers handed out so far
 * @param releases buffers that came home so far
 * @param grows buffers that moved to a larger block
 * @param refusals allocations that met the limit or were refused by the device
 * @param exhaustedBuffers plain buffers that the allocator gave instead, because of that
 * @param oversizeBuffers plain buffers that the allocator gave because they exceed {@link BufferPoolOptions#largestPooledBytes()}
 * @param plainBytes what those plain buffers hold now
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

    /** Of a pool that has done nothing. */
    public static final BufferPoolMetrics NONE = new BufferPoolMetrics(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);

    /**
     * Adds another pool's.
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
