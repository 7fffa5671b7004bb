package org.verbena.transport.buffer;

import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.verbena.transport.BufferPoolMetrics;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.ffm.MappedMemory;
import org.verbena.transport.spi.OptionProperties;

/**
 * The options of a {@link RegisteredBufferPool}. Start from {@link #DEFAULTS} and change what differs.
 *
 * @param maxRegisteredBytes the most memory the pool keeps registered at once, 4096 or more; registered memory is
 *     pinned and counts against the process's memlock limit
 * @param chunkBytes how much is registered at a time, and the largest size class: a power of two from 256 KiB to 1 GiB.
 *     A larger buffer gets its own chunk
 * @param largestPooledBytes the largest buffer that the allocator takes from the pool; a larger one is plain direct
 *     memory (counted, see {@link BufferPoolMetrics#oversizeBuffers()}). {@link RegisteredBufferPool#allocate} is
 *     limited by {@code maxRegisteredBytes} only
 * @param access the rights that chunks are registered with. REMOTE_READ, REMOTE_WRITE and REMOTE_ATOMIC open every
 *     buffer of the pool to every peer that learns or guesses a key: use such a pool only among peers that trust each
 *     other; otherwise register a buffer for one operation ({@link OperationRegistration})
 * @param onExhaustion how the allocator reacts when the pool is at its limit
 * @param loopCacheBytesPerClass how much of each size class an attached event loop caches, 0 or more
 * @param idleNanos how long a chunk must be unused before it is freed, in nanoseconds, 0 or more; checked by {@link
 *     RegisteredBufferPool#trim()}, which attached event loops call at half this interval
 * @param hugePages whether to ask the kernel to back chunks with huge pages; if so, {@code chunkBytes} must be 2 MiB or
 *     more
 */
public record BufferPoolOptions(
        long maxRegisteredBytes,
        int chunkBytes,
        int largestPooledBytes,
        Set<MemoryDomain.Access> access,
        Exhaustion onExhaustion,
        int loopCacheBytesPerClass,
        long idleNanos,
        boolean hugePages) {

    private static final String PROPERTY_PREFIX = "org.verbena.buffers.";
    private static final int MIN_CHUNK_BYTES = 256 << 10;
    static final int MAX_CHUNK_BYTES = 1 << 30;

    /**
     * 1 GiB in chunks of 2 MiB, buffers of up to 64 MiB from the allocator, LOCAL_WRITE only, plain memory at the
     * limit, 256 KiB per size class and loop, idle after 30 s, no huge pages.
     */
    public static final BufferPoolOptions DEFAULTS = new BufferPoolOptions(
            1L << 30,
            2 << 20,
            64 << 20,
            Set.of(MemoryDomain.Access.LOCAL_WRITE),
            Exhaustion.UNPOOLED,
            256 << 10,
            TimeUnit.SECONDS.toNanos(30),
            false);

    /** How an allocator reacts when the pool is at its limit, or the device refuses to register more. */
    public enum Exhaustion {
        /** Throws an exception that names the limit and the option to change. */
        FAIL,
        /**
         * Returns plain direct memory, which is copied or registered when it is sent. Counted, and logged the first
         * time.
         */
        UNPOOLED
    }

    /** Checks ranges. */
    public BufferPoolOptions {
        if (maxRegisteredBytes < Chunk.PAGE_BYTES) {
            throw new IllegalArgumentException(
                    "maxRegisteredBytes " + maxRegisteredBytes + " is below a page of " + Chunk.PAGE_BYTES);
        }
        if (chunkBytes < MIN_CHUNK_BYTES || chunkBytes > MAX_CHUNK_BYTES || Integer.bitCount(chunkBytes) != 1) {
            throw new IllegalArgumentException("chunkBytes " + chunkBytes + " is not a power of two from "
                    + MIN_CHUNK_BYTES + " to " + MAX_CHUNK_BYTES);
        }
        if (largestPooledBytes < 0) {
            throw new IllegalArgumentException("largestPooledBytes " + largestPooledBytes + " is negative");
        }
        if (loopCacheBytesPerClass < 0) {
            throw new IllegalArgumentException("loopCacheBytesPerClass " + loopCacheBytesPerClass + " is negative");
        }
        if (idleNanos < 0) {
            throw new IllegalArgumentException("idleNanos " + idleNanos + " is negative");
        }
        if (hugePages && chunkBytes < MappedMemory.HUGE_PAGE_BYTES) {
            throw new IllegalArgumentException(
                    "hugePages need a chunkBytes of " + MappedMemory.HUGE_PAGE_BYTES + " or more, not " + chunkBytes);
        }
        access = Set.copyOf(access);
    }

    /**
     * The options of the pools of channels: {@link #DEFAULTS}, overridden by the system properties {@code
     * org.verbena.buffers.maxRegisteredBytes}, {@code chunkBytes}, {@code largestPooledBytes} and {@code hugePages}
     * (true or false), all with that prefix.
     *
     * @return options
     * @throws IllegalArgumentException a property's value is malformed or out of range
     */
    public static BufferPoolOptions ofSystemProperties() {
        return DEFAULTS.withMaxRegisteredBytes(OptionProperties.number(
                        PROPERTY_PREFIX + "maxRegisteredBytes", Long.MAX_VALUE, DEFAULTS.maxRegisteredBytes))
                .withChunkBytes(OptionProperties.number(PROPERTY_PREFIX + "chunkBytes", DEFAULTS.chunkBytes))
                .withLargestPooledBytes(
                        OptionProperties.number(PROPERTY_PREFIX + "largestPooledBytes", DEFAULTS.largestPooledBytes))
                .withHugePages(OptionProperties.flag(PROPERTY_PREFIX + "hugePages", DEFAULTS.hugePages));
    }

    /**
     * Changes the limit.
     *
     * @param bytes see {@link #maxRegisteredBytes()}
     * @return a copy
     */
    public BufferPoolOptions withMaxRegisteredBytes(long bytes) {
        return new BufferPoolOptions(
                bytes,
                chunkBytes,
                largestPooledBytes,
                access,
                onExhaustion,
                loopCacheBytesPerClass,
                idleNanos,
                hugePages);
    }

    /**
     * Changes the size of chunks.
     *
     * @param bytes see {@link #chunkBytes()}
     * @return a copy
     */
    public BufferPoolOptions withChunkBytes(int bytes) {
        return new BufferPoolOptions(
                maxRegisteredBytes,
                bytes,
                largestPooledBytes,
                access,
                onExhaustion,
                loopCacheBytesPerClass,
                idleNanos,
                hugePages);
    }

    /**
     * Changes the largest buffer that the allocator takes from the pool.
     *
     * @param bytes see {@link #largestPooledBytes()}
     * @return a copy
     */
    public BufferPoolOptions withLargestPooledBytes(int bytes) {
        return new BufferPoolOptions(
                maxRegisteredBytes,
                chunkBytes,
                bytes,
                access,
                onExhaustion,
                loopCacheBytesPerClass,
                idleNanos,
                hugePages);
    }

    /**
     * Changes the rights that chunks are registered with.
     *
     * @param rights see {@link #access()}
     * @return a copy
     */
    public BufferPoolOptions withAccess(Set<MemoryDomain.Access> rights) {
        return new BufferPoolOptions(
                maxRegisteredBytes,
                chunkBytes,
                largestPooledBytes,
                rights,
                onExhaustion,
                loopCacheBytesPerClass,
                idleNanos,
                hugePages);
    }

    /**
     * Changes the reaction at the limit.
     *
     * @param what see {@link #onExhaustion()}
     * @return a copy
     */
    public BufferPoolOptions withOnExhaustion(Exhaustion what) {
        return new BufferPoolOptions(
                maxRegisteredBytes,
                chunkBytes,
                largestPooledBytes,
                access,
                what,
                loopCacheBytesPerClass,
                idleNanos,
                hugePages);
    }

    /**
     * Changes how much loops cache.
     *
     * @param bytes see {@link #loopCacheBytesPerClass()}
     * @return a copy
     */
    public BufferPoolOptions withLoopCacheBytesPerClass(int bytes) {
        return new BufferPoolOptions(
                maxRegisteredBytes, chunkBytes, largestPooledBytes, access, onExhaustion, bytes, idleNanos, hugePages);
    }

    /**
     * Changes when unused chunks are freed.
     *
     * @param nanos see {@link #idleNanos()}
     * @return a copy
     */
    public BufferPoolOptions withIdleNanos(long nanos) {
        return new BufferPoolOptions(
                maxRegisteredBytes,
                chunkBytes,
                largestPooledBytes,
                access,
                onExhaustion,
                loopCacheBytesPerClass,
                nanos,
                hugePages);
    }

    /**
     * Changes whether chunks use huge pages.
     *
     * @param wanted see {@link #hugePages()}
     * @return a copy
     */
    public BufferPoolOptions withHugePages(boolean wanted) {
        return new BufferPoolOptions(
                maxRegisteredBytes,
                chunkBytes,
                largestPooledBytes,
                access,
                onExhaustion,
                loopCacheBytesPerClass,
                idleNanos,
                wanted);
    }
}
