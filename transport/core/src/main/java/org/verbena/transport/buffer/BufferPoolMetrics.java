package org.verbena.transport.buffer;

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
 * @param oversizeBuffers plain buffers that the allocator returned because they exceed {@link
 *     BufferPoolOptions#largestPooledBytes()}
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
    public static final BufferPoolMetrics NONE = new Builder().build();

    /**
     * Adds the metrics of another pool.
     *
     * @param other what to add
     * @return the sum, member by member
     */
    public BufferPoolMetrics plus(BufferPoolMetrics other) {
        return new Builder()
                .registeredBytes(registeredBytes + other.registeredBytes)
                .maxRegisteredBytes(maxRegisteredBytes + other.maxRegisteredBytes)
                .chunks(chunks + other.chunks)
                .usedBytes(usedBytes + other.usedBytes)
                .cachedBytes(cachedBytes + other.cachedBytes)
                .freeBytes(freeBytes + other.freeBytes)
                .allocations(allocations + other.allocations)
                .releases(releases + other.releases)
                .grows(grows + other.grows)
                .refusals(refusals + other.refusals)
                .exhaustedBuffers(exhaustedBuffers + other.exhaustedBuffers)
                .oversizeBuffers(oversizeBuffers + other.oversizeBuffers)
                .plainBytes(plainBytes + other.plainBytes)
                .chunksRegistered(chunksRegistered + other.chunksRegistered)
                .chunksReleased(chunksReleased + other.chunksReleased)
                .build();
    }

    /** Builds a record; what is not set is 0. */
    static final class Builder {
        private long registeredBytes;
        private long maxRegisteredBytes;
        private int chunks;
        private long usedBytes;
        private long cachedBytes;
        private long freeBytes;
        private long allocations;
        private long releases;
        private long grows;
        private long refusals;
        private long exhaustedBuffers;
        private long oversizeBuffers;
        private long plainBytes;
        private long chunksRegistered;
        private long chunksReleased;

        Builder registeredBytes(long value) {
            registeredBytes = value;
            return this;
        }

        Builder maxRegisteredBytes(long value) {
            maxRegisteredBytes = value;
            return this;
        }

        Builder chunks(int value) {
            chunks = value;
            return this;
        }

        Builder usedBytes(long value) {
            usedBytes = value;
            return this;
        }

        Builder cachedBytes(long value) {
            cachedBytes = value;
            return this;
        }

        Builder freeBytes(long value) {
            freeBytes = value;
            return this;
        }

        Builder allocations(long value) {
            allocations = value;
            return this;
        }

        Builder releases(long value) {
            releases = value;
            return this;
        }

        Builder grows(long value) {
            grows = value;
            return this;
        }

        Builder refusals(long value) {
            refusals = value;
            return this;
        }

        Builder exhaustedBuffers(long value) {
            exhaustedBuffers = value;
            return this;
        }

        Builder oversizeBuffers(long value) {
            oversizeBuffers = value;
            return this;
        }

        Builder plainBytes(long value) {
            plainBytes = value;
            return this;
        }

        Builder chunksRegistered(long value) {
            chunksRegistered = value;
            return this;
        }

        Builder chunksReleased(long value) {
            chunksReleased = value;
            return this;
        }

        BufferPoolMetrics build() {
            return new BufferPoolMetrics(
                    registeredBytes,
                    maxRegisteredBytes,
                    chunks,
                    usedBytes,
                    cachedBytes,
                    freeBytes,
                    allocations,
                    releases,
                    grows,
                    refusals,
                    exhaustedBuffers,
                    oversizeBuffers,
                    plainBytes,
                    chunksRegistered,
                    chunksReleased);
        }
    }
}
