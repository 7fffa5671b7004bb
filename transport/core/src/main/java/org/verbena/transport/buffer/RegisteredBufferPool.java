package org.verbena.transport.buffer;

import io.netty.util.concurrent.EventExecutor;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.BufferPoolMetrics;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.RdmaException;
import org.verbena.transport.RegisteredMemoryExhaustedException;
import org.verbena.transport.ffm.MappedMemory;

/**
 * Buffers in memory that is registered once. The pool allocates chunks, registers each as one region, and divides them
 * into blocks. A buffer is a block with a recycled {@link RegisteredByteBuf}: once the pool is warm, taking and
 * releasing one allocates nothing.
 *
 * <pre>{@code
 * chunk (registered) --runs of pages--> slab of one size class --> blocks --> caches of event loops --> buffers
 * }</pre>
 *
 * <p>Any thread may allocate and release. An event loop that is {@linkplain #attach attached} has its own cache: it
 * takes and releases without atomics or locks, and buffers that other threads release return to it. Other threads share
 * a lock.
 *
 * <p>The memory is bounded by {@link BufferPoolOptions#maxRegisteredBytes()}. A chunk without blocks in use is freed
 * when it has been idle for {@link BufferPoolOptions#idleNanos()}: its region is closed, and its memory is freed when
 * no work request uses it any more.
 *
 * <p>Use separate pools for sending and receiving: in a common pool, either can starve the other.
 */
public final class RegisteredBufferPool implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(RegisteredBufferPool.class);

    /** Trimming more often than this costs more than it frees. */
    private static final long MIN_TRIM_INTERVAL_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

    /** Memory is scarce when less than this part is left. */
    private static final int SCARCE_DIVISOR = 4;

    /** Longer than any pause between a request and the question whether to try again. */
    private static final long DOUBT_NANOS = TimeUnit.SECONDS.toNanos(10);

    /** How often memory that could not be freed at once is tried again. */
    private static final long FREE_RETRY_MILLIS = 100;

    private final MemoryDomain domain;
    private final BufferPoolOptions options;
    private final int classes;
    private final RdmaByteBufAllocator allocator = new RdmaByteBufAllocator(this);

    private final ReentrantLock lock = new ReentrantLock();

    // Everything from here on is guarded by the lock.
    private final ChunkSpace space;
    private final List<LoopCache> caches = new ArrayList<>();
    private final List<Chunk> unfreed = new ArrayList<>();
    private int chunks;
    private long allocations;
    private long releases;
    private long chunksRegistered;
    private long chunksReleased;

    /** Written with the lock held. */
    private volatile boolean closed;

    /**
     * Someone waits for memory: released blocks go to the shared part, where anyone can take them, and the listener is
     * notified.
     */
    private volatile boolean watched;

    private volatile @Nullable Runnable freedListener;

    /** When the device was last asked for memory, or refused it. */
    private volatile long askedNanos = System.nanoTime() - DOUBT_NANOS;

    private final LongAdder grows = new LongAdder();
    private final LongAdder refusals = new LongAdder();

    /**
     * Makes an empty pool. The first allocation registers the first chunk.
     *
     * @param domain the domain to register chunks in; must outlive the pool
     * @param options limits and sizes
     * @throws IllegalStateException huge pages are requested but not available; the message says why
     */
    public RegisteredBufferPool(MemoryDomain domain, BufferPoolOptions options) {
        this(domain, options, System::nanoTime);
    }

    /** With a clock for tests. */
    RegisteredBufferPool(MemoryDomain domain, BufferPoolOptions options, LongSupplier nanoClock) {
        this.domain = domain;
        this.options = options;
        if (options.hugePages()) {
            String cause = MappedMemory.hugePagesUnavailabilityCause();
            if (cause != null) {
                throw new IllegalStateException("BufferPoolOptions.hugePages are not available: " + cause);
            }
        }
        classes = SizeClasses.indexOf(options.chunkBytes()) + 1;
        space = new ChunkSpace(options, nanoClock, classes);
    }

    /**
     * The domain that the memory is registered in.
     *
     * @return as given
     */
    public MemoryDomain domain() {
        return domain;
    }

    /**
     * Limits and sizes.
     *
     * @return as given
     */
    public BufferPoolOptions options() {
        return options;
    }

    /**
     * This pool as an allocator for channels.
     *
     * @return always the same
     */
    public RdmaByteBufAllocator allocator() {
        return allocator;
    }

    /**
     * Allocates a buffer that may grow without bound. Not tracked by Netty's leak detector; {@link #allocator()}'s
     * buffers are.
     *
     * @param capacityBytes 0 or more
     * @return a buffer with one reference, no readable bytes and the requested capacity; its content is undefined
     * @throws RegisteredMemoryExhaustedException the pool is at its limit
     * @throws RdmaException the device refused to register more; the message says why and what to do
     * @throws IllegalStateException the pool is closed
     */
    public RegisteredByteBuf allocate(int capacityBytes) {
        return allocate(capacityBytes, Integer.MAX_VALUE);
    }

    /**
     * Allocates a buffer. Not tracked by Netty's leak detector; {@link #allocator()}'s buffers are.
     *
     * @param capacityBytes 0 or more
     * @param maxCapacityBytes what it may grow to
     * @return a buffer with one reference, no readable bytes and the requested capacity; its content is undefined
     * @throws RegisteredMemoryExhaustedException the pool is at its limit
     * @throws RdmaException the device refused to register more; the message says why and what to do
     * @throws IllegalStateException the pool is closed
     */
    public RegisteredByteBuf allocate(int capacityBytes, int maxCapacityBytes) {
        RegisteredByteBuf buffer = tryAllocate(capacityBytes, maxCapacityBytes);
        if (buffer == null) {
            throw exhausted(capacityBytes);
        }
        return buffer;
    }

    /**
     * Allocates a buffer, if the limit allows.
     *
     * @param capacityBytes 0 or more
     * @param maxCapacityBytes what it may grow to
     * @return null if the pool is at its limit
     * @throws RdmaException the device refused to register more; the message says why and what to do
     * @throws IllegalStateException the pool is closed
     */
    public @Nullable RegisteredByteBuf tryAllocate(int capacityBytes, int maxCapacityBytes) {
        if (capacityBytes < 0 || maxCapacityBytes < capacityBytes) {
            throw new IllegalArgumentException(
                    "capacity " + capacityBytes + " is not from 0 to the maximum capacity " + maxCapacityBytes);
        }
        Block block = takeBlock(capacityBytes);
        if (block == null) {
            return null;
        }
        RegisteredByteBuf buffer = block.buffer;
        if (buffer == null) {
            buffer = new RegisteredByteBuf(this, block, capacityBytes, maxCapacityBytes);
            block.buffer = buffer;
        } else {
            buffer.reuse(capacityBytes, maxCapacityBytes);
        }
        return buffer;
    }

    /**
     * Gives an event loop a cache of its own, and makes it {@linkplain #trim() trim} the pool now and then. Ends with
     * the loop or the pool. Does nothing if the loop has one.
     *
     * @param loop runs on one thread for all its life, as Netty's event loops do
     */
    public void attach(EventExecutor loop) {
        if (loop.inEventLoop()) {
            attach0(loop);
        } else {
            loop.execute(() -> attach0(loop));
        }
    }

    private void attach0(EventExecutor loop) {
        assert loop.inEventLoop();
        if (LoopCaches.of(this) != null) {
            return;
        }
        LoopCache cache = new LoopCache(this, loop, classes, options.loopCacheBytesPerClass());
        lock.lock();
        try {
            if (closed) {
                return;
            }
            caches.add(cache);
        } finally {
            lock.unlock();
        }
        LoopCaches.add(cache);
        long intervalNanos = Math.max(MIN_TRIM_INTERVAL_NANOS, options.idleNanos() / 2);
        cache.trimmedBy(loop.scheduleWithFixedDelay(this::trim, intervalNanos, intervalNanos, TimeUnit.NANOSECONDS));
    }

    /**
     * Sets the listener that is notified when memory comes back while the pool is {@linkplain #watch watched}. Once, by
     * the pool's owner.
     *
     * @param listener called on whichever thread gives memory back; must not block
     */
    public void onFreed(Runnable listener) {
        freedListener = listener;
    }

    /**
     * Starts or stops watching for released memory. While the pool is watched, released buffers bypass the caches of
     * loops, so that the waiting party finds them. To miss nothing, watch first, then {@link #recall}, then try to
     * allocate, then wait.
     *
     * @param watch whether to notify the listener when memory comes back
     */
    public void watch(boolean watch) {
        watched = watch;
    }

    /**
     * Moves free blocks from the caches of loops to the shared part, where anyone can take them. The calling loop's
     * blocks move at once, and so do those that threads other than the block's loop have released; the other loops move
     * theirs as soon as they run. Notifies the listener of what moves while the pool is {@linkplain #watch watched}.
     * Any thread.
     */
    public void recall() {
        for (LoopCache cache : attachedCaches()) {
            if (cache.isOwnedByCurrentThread()) {
                cache.flushAll();
            } else {
                cache.giveForeignBack();
                cache.askToFlush();
            }
        }
    }

    private List<LoopCache> attachedCaches() {
        lock.lock();
        try {
            return List.copyOf(caches);
        } finally {
            lock.unlock();
        }
    }

    /**
     * Whether someone waits for memory of this pool.
     *
     * @return whether {@link #watch} was called last with true
     */
    public boolean isWatched() {
        return watched;
    }

    /**
     * Whether less than a quarter of what the pool may have is left, the caches of loops not counted. Any thread, for
     * one read of memory.
     *
     * @return whether that is so; this may change at once
     */
    public boolean isScarce() {
        return space.outBytes() > options.maxRegisteredBytes() - options.maxRegisteredBytes() / SCARCE_DIVISOR;
    }

    /**
     * Whether the device was asked for memory in the last seconds. A request that found none meanwhile is not notified
     * if the device refuses, or when it has memory again: it must be made again after a while. (To notify it of a
     * refusal would be to ask again at once, and without end.)
     *
     * @return whether that is so; this may change at once
     */
    public boolean isInDoubt() {
        return System.nanoTime() - askedNanos < DOUBT_NANOS;
    }

    /**
     * How much of the pool a buffer takes.
     *
     * @param capacityBytes its capacity
     * @return the length of the block that it would live in
     */
    public long blockBytes(int capacityBytes) {
        return capacityBytes > options.chunkBytes()
                ? ChunkSpace.roundedToPages(capacityBytes)
                : SizeClasses.bytesOf(SizeClasses.indexOf(capacityBytes));
    }

    private void reportFreed() {
        Runnable listener = freedListener;
        if (watched && listener != null) {
            listener.run();
        }
    }

    /**
     * Frees what is not needed: blocks that the calling loop's cache has not used since the last call, and chunks that
     * have been idle long enough.
     */
    public void trim() {
        LoopCache cache = LoopCaches.of(this);
        if (cache != null) {
            cache.trim();
        }
        Chunk leaving;
        lock.lock();
        try {
            space.dissolveWholeSlabs();
            leaving = space.removeIdleChunks(options.idleNanos(), Long.MAX_VALUE);
        } finally {
            lock.unlock();
        }
        closeRegions(leaving);
    }

    /**
     * The pool's counters and current contents.
     *
     * @return a snapshot
     */
    public BufferPoolMetrics metrics() {
        lock.lock();
        try {
            long cachedBytes = 0;
            long allAllocations = allocations;
            long allReleases = releases;
            for (LoopCache cache : caches) {
                cachedBytes += cache.cachedBytes();
                allAllocations += cache.allocations();
                allReleases += cache.releases();
            }
            return new BufferPoolMetrics(
                    space.registeredBytes,
                    options.maxRegisteredBytes(),
                    chunks,
                    space.outBytes() - cachedBytes,
                    cachedBytes,
                    space.registeredBytes - space.outBytes(),
                    allAllocations,
                    allReleases,
                    grows.sum(),
                    refusals.sum(),
                    allocator.exhaustedBuffers(),
                    allocator.oversizeBuffers(),
                    allocator.plainBytes(),
                    chunksRegistered,
                    chunksReleased);
        } finally {
            lock.unlock();
        }
    }

    /**
     * Ends the pool: no more allocations. Free memory is given back now, the rest as its buffers are released.
     * Idempotent.
     */
    @Override
    public void close() {
        List<LoopCache> attached;
        lock.lock();
        try {
            if (closed) {
                return;
            }
            closed = true;
            attached = List.copyOf(caches);
        } finally {
            lock.unlock();
        }
        for (LoopCache cache : attached) {
            if (cache.isOwnedByCurrentThread()) {
                cache.detach();
            } else {
                executeOn(cache.loop, cache::detach);
            }
        }
        Chunk leaving;
        lock.lock();
        try {
            space.dissolveWholeSlabs();
            leaving = space.removeIdleChunks(0, Long.MAX_VALUE);
        } finally {
            lock.unlock();
        }
        closeRegions(leaving);
    }

    static void executeOn(EventExecutor loop, Runnable task) {
        try {
            loop.execute(task);
        } catch (RejectedExecutionException ended) {
            // The loop is over: its thread-local caches are detached as its thread ends.
            LOG.trace("event loop {} has ended", loop, ended);
        }
    }

    /** The exception for a request beyond the limit. */
    RegisteredMemoryExhaustedException exhausted(int capacityBytes) {
        BufferPoolMetrics now = metrics();
        return new RegisteredMemoryExhaustedException("no registered memory for a buffer of " + capacityBytes
                + " bytes: " + now.registeredBytes() + " of at most " + now.maxRegisteredBytes()
                + " bytes are registered (" + now.usedBytes() + " in buffers, " + now.cachedBytes()
                + " in the caches of event loops). Release buffers, or raise BufferPoolOptions.maxRegisteredBytes.");
    }

    /** Counts a buffer that moved to a larger block. */
    void countGrow() {
        grows.increment();
    }

    /** Takes a block for so many bytes, or null at the limit. */
    @Nullable Block takeBlock(int bytes) {
        LoopCache cache = LoopCaches.of(this);
        Block block = takeBlock(bytes, cache);
        if (block == null) {
            collectFree();
            block = takeBlock(bytes, cache);
            if (block == null) {
                refusals.increment();
            }
        }
        return block;
    }

    private @Nullable Block takeBlock(int bytes, @Nullable LoopCache cache) {
        if (bytes > options.chunkBytes()) {
            return takeDedicated(bytes);
        }
        int sizeClass = SizeClasses.indexOf(bytes);
        return cache == null || !cache.keeps(sizeClass) ? takeShared(sizeClass, 1, true) : cache.take(sizeClass);
    }

    boolean isClosed() {
        return closed;
    }

    /**
     * Takes what the calling thread can reach, for itself, and makes other loops give up what they keep, for the next
     * caller.
     */
    private void collectFree() {
        for (LoopCache cache : attachedCaches()) {
            if (cache.isOwnedByCurrentThread()) {
                cache.flushAll();
            } else {
                cache.giveForeignBack();
                if (cache.cachedBytes() > 0) {
                    cache.askToFlush();
                }
            }
        }
    }

    /**
     * Takes blocks from the shared part.
     *
     * @param sizeClass which size
     * @param max the most blocks to take
     * @param counted whether a buffer is about to live in it
     * @return a list of at least one, or null at the limit
     */
    @Nullable Block takeShared(int sizeClass, int max, boolean counted) {
        int slabPages = Slab.pagesFor(SizeClasses.bytesOf(sizeClass));
        while (true) {
            long growBytes;
            Chunk leaving = null;
            lock.lock();
            try {
                requireOpen();
                Block list = space.take(sizeClass, slabPages, max);
                if (list != null) {
                    if (counted) {
                        allocations++;
                    }
                    return list;
                }
                growBytes = space.reserve((long) slabPages * Chunk.PAGE_BYTES);
                if (growBytes == 0) {
                    leaving = space.removeIdleChunks(0, space.missing(options.chunkBytes()));
                }
            } finally {
                lock.unlock();
            }
            if (growBytes > 0) {
                Chunk chunk = register(growBytes);
                Block list = addIfOpen(chunk, sizeClass, slabPages, max, counted);
                if (list != null) {
                    // Requests made while the chunk was being registered were refused, and it has room for more than
                    // this one.
                    reportFreed();
                    return list;
                }
                closeRegions(chunk);
            } else if (leaving == null) {
                return null;
            } else {
                closeRegions(leaving);
            }
        }
    }

    /** Adds a new chunk and takes blocks, before others can take them all; null if the pool was closed meanwhile. */
    private @Nullable Block addIfOpen(Chunk chunk, int sizeClass, int slabPages, int max, boolean counted) {
        lock.lock();
        try {
            if (closed) {
                return null;
            }
            space.add(chunk);
            if (counted) {
                allocations++;
            }
            return space.take(sizeClass, slabPages, max);
        } finally {
            lock.unlock();
        }
    }

    private @Nullable Block takeDedicated(int bytes) {
        long neededBytes = ChunkSpace.roundedToPages(bytes);
        while (true) {
            long growBytes;
            Chunk leaving = null;
            lock.lock();
            try {
                requireOpen();
                Block idle = space.takeDedicated(neededBytes);
                if (idle != null) {
                    allocations++;
                    return idle;
                }
                growBytes = space.reserveDedicated(bytes, neededBytes);
                if (growBytes == 0) {
                    space.dissolveWholeSlabs();
                    leaving = space.removeIdleChunks(0, space.missing(ChunkSpace.dedicatedBytes(bytes)));
                }
            } finally {
                lock.unlock();
            }
            if (growBytes > 0) {
                Chunk chunk = register(growBytes);
                int blockBytes = (int) Math.min(growBytes, Integer.MAX_VALUE);
                lock.lock();
                try {
                    if (!closed) {
                        allocations++;
                        return space.addDedicated(chunk, blockBytes);
                    }
                } finally {
                    lock.unlock();
                }
                closeRegions(chunk);
            } else if (leaving == null) {
                return null;
            } else {
                closeRegions(leaving);
            }
        }
    }

    /** Registers a chunk whose bytes are reserved; takes the reservation back if that fails. */
    private Chunk register(long bytes) {
        Chunk chunk;
        askedNanos = System.nanoTime();
        try {
            chunk = Chunk.create(domain, options, bytes);
        } catch (Throwable failure) {
            askedNanos = System.nanoTime();
            lock.lock();
            try {
                space.registeredBytes -= bytes;
            } finally {
                lock.unlock();
            }
            refusals.increment();
            if (failure instanceof OutOfMemoryError) {
                throw new RegisteredMemoryExhaustedException(
                        "no native memory for a chunk of " + bytes + " bytes (" + failure.getMessage()
                                + "). Lower BufferPoolOptions.maxRegisteredBytes, or give the process or its container"
                                + " more memory: this memory is outside of -Xmx and of -XX:MaxDirectMemorySize.",
                        failure);
            }
            throw failure;
        }
        lock.lock();
        try {
            chunks++;
            chunksRegistered++;
        } finally {
            lock.unlock();
        }
        chunk.region.whenGone(() -> free(chunk));
        return chunk;
    }

    /** Called when the device has forgotten a chunk. */
    private void free(Chunk chunk) {
        boolean freed = chunk.tryFree();
        lock.lock();
        try {
            space.registeredBytes -= chunk.lengthBytes;
            chunks--;
            chunksReleased++;
            if (!freed) {
                unfreed.add(chunk);
            }
        } finally {
            lock.unlock();
        }
        if (!freed) {
            freeLater();
        }
        reportFreed();
    }

    /**
     * Another thread is in a system call with a view of a released buffer: its memory is freed when it has come back.
     */
    private void freeLater() {
        try {
            CompletableFuture.delayedExecutor(FREE_RETRY_MILLIS, TimeUnit.MILLISECONDS)
                    .execute(() -> {
                        if (!freeLeftovers()) {
                            freeLater();
                        }
                    });
        } catch (Error noThread) {
            LOG.debug("memory in use stays until another chunk is freed late", noThread);
        }
    }

    private boolean freeLeftovers() {
        lock.lock();
        try {
            unfreed.removeIf(Chunk::tryFree);
            return unfreed.isEmpty();
        } finally {
            lock.unlock();
        }
    }

    private static void closeRegions(@Nullable Chunk leaving) {
        for (Chunk chunk = leaving; chunk != null; chunk = chunk.next) {
            chunk.region.close();
        }
    }

    /**
     * Takes back a released block.
     *
     * @param block from a buffer
     */
    void giveBack(Block block) {
        LoopCache home = block.home;
        if (home == null || watched) {
            giveShared(block, true);
        } else {
            home.give(block);
        }
    }

    /**
     * Takes blocks back into the shared part.
     *
     * @param list the first of a list
     * @param counted whether it comes from a buffer
     */
    void giveShared(@Nullable Block list, boolean counted) {
        Chunk leaving = null;
        lock.lock();
        try {
            Block block = list;
            while (block != null) {
                Block following = block.next;
                space.give(block, closed);
                if (counted) {
                    releases++;
                }
                block = following;
            }
            if (closed) {
                leaving = space.removeIdleChunks(0, Long.MAX_VALUE);
            }
        } finally {
            lock.unlock();
        }
        closeRegions(leaving);
        reportFreed();
    }

    /** A loop's cache is empty and will not be used again. */
    void forget(LoopCache cache) {
        lock.lock();
        try {
            if (caches.remove(cache)) {
                allocations += cache.allocations();
                releases += cache.releases();
            }
        } finally {
            lock.unlock();
        }
    }

    /** With the lock held. */
    private void requireOpen() {
        if (closed) {
            throw new IllegalStateException("the buffer pool is closed");
        }
    }
}
