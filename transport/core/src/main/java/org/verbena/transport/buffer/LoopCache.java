package org.verbena.transport.buffer;

import io.netty.util.concurrent.EventExecutor;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * Free blocks that one event loop keeps for itself. Everything here belongs to the loop's thread and is free of
 * atomics, except for {@link #foreign}: the stack onto which other threads push the blocks that they release. It is
 * only taken whole, by the loop or by a thread that finds the pool at its limit, so a compare-and-set never meets an
 * entry twice.
 */
@SuppressWarnings("ReferenceEquality") // the sentinel is an identity
final class LoopCache {
    /** More blocks than this of one class are not worth keeping, however small they are. */
    private static final int MAX_BLOCKS_PER_CLASS = 256;

    /**
     * How many blocks are fetched from the shared part at a time: enough to make its lock rare, few enough to take
     * little.
     */
    private static final int MAX_REFILL_BLOCKS = 32;

    /** Marks the foreign stack as closed once the loop has ended. */
    @SuppressWarnings("NullAway") // never used as a block
    private static final Block DETACHED = new Block(null, 0, 0);

    private static final VarHandle FOREIGN;
    private static final VarHandle CACHED_BYTES;
    private static final VarHandle ALLOCATIONS;
    private static final VarHandle RELEASES;

    static {
        try {
            MethodHandles.Lookup lookup = MethodHandles.lookup();
            FOREIGN = lookup.findVarHandle(LoopCache.class, "foreign", Block.class);
            CACHED_BYTES = lookup.findVarHandle(LoopCache.class, "cachedBytes", long.class);
            ALLOCATIONS = lookup.findVarHandle(LoopCache.class, "allocations", long.class);
            RELEASES = lookup.findVarHandle(LoopCache.class, "releases", long.class);
        } catch (ReflectiveOperationException impossible) {
            throw new ExceptionInInitializerError(impossible);
        }
    }

    final RegisteredBufferPool pool;
    final EventExecutor loop;
    private final Thread thread;

    private final @Nullable Block[] heads;
    private final int[] counts;
    private final int[] limits;

    /** The fewest blocks of each class since the last trim: that many were not needed. */
    private final int[] lowest;

    /** Written by any thread: to push a block or to take all of them; by the loop to close it. */
    @SuppressWarnings("unused") // through FOREIGN
    private volatile @Nullable Block foreign;

    /** Written by the loop, read by any thread that collects metrics. */
    private long cachedBytes;

    private long allocations;
    private long releases;

    /** Whether a task of the loop that flushes is pending. */
    private final AtomicBoolean flushAsked = new AtomicBoolean();

    private boolean detached;
    private @Nullable Future<?> trimming;

    LoopCache(RegisteredBufferPool pool, EventExecutor loop, int classes, int bytesPerClass) {
        this.pool = pool;
        this.loop = loop;
        thread = Thread.currentThread();
        heads = new Block[classes];
        counts = new int[classes];
        limits = new int[classes];
        lowest = new int[classes];
        for (int i = 0; i < classes; i++) {
            limits[i] = Math.min(MAX_BLOCKS_PER_CLASS, bytesPerClass / SizeClasses.bytesOf(i));
        }
    }

    /** Keeps the trim task, which is cancelled when the cache closes. */
    void trimmedBy(Future<?> task) {
        trimming = task;
    }

    boolean isOwnedByCurrentThread() {
        return thread == Thread.currentThread();
    }

    /** Whether blocks of a class are kept here at all. */
    boolean keeps(int sizeClass) {
        return limits[sizeClass] > 0;
    }

    long cachedBytes() {
        return (long) CACHED_BYTES.getOpaque(this);
    }

    long allocations() {
        return (long) ALLOCATIONS.getOpaque(this);
    }

    long releases() {
        return (long) RELEASES.getOpaque(this);
    }

    /** Takes a block, or null if the pool is at its limit. */
    @Nullable Block take(int sizeClass) {
        assert isOwnedByCurrentThread();
        Block block = heads[sizeClass];
        if (block == null) {
            collect();
            block = heads[sizeClass];
            if (block == null) {
                block = refill(sizeClass);
                if (block == null) {
                    return null;
                }
            }
        }
        heads[sizeClass] = block.next;
        block.next = null;
        block.home = this;
        int left = --counts[sizeClass];
        if (left < lowest[sizeClass]) {
            lowest[sizeClass] = left;
        }
        CACHED_BYTES.setOpaque(this, cachedBytes - block.lengthBytes);
        ALLOCATIONS.setOpaque(this, allocations + 1);
        return block;
    }

    private @Nullable Block refill(int sizeClass) {
        int wanted = Math.min(MAX_REFILL_BLOCKS, (limits[sizeClass] + 1) / 2);
        Block list = pool.takeShared(sizeClass, wanted, false);
        int count = 0;
        for (Block block = list; block != null; block = block.next) {
            count++;
        }
        heads[sizeClass] = list;
        counts[sizeClass] = count;
        lowest[sizeClass] = 0;
        CACHED_BYTES.setOpaque(this, cachedBytes + (long) count * SizeClasses.bytesOf(sizeClass));
        return list;
    }

    /** Takes back a released block, on any thread. */
    void give(Block block) {
        if (isOwnedByCurrentThread()) {
            if (detached) {
                pool.giveShared(block, true);
            } else {
                giveOwn(block);
            }
            return;
        }
        Block top;
        do {
            top = (Block) FOREIGN.getAcquire(this);
            if (top == DETACHED) {
                block.next = null;
                pool.giveShared(block, true);
                return;
            }
            block.next = top;
        } while (!FOREIGN.weakCompareAndSet(this, top, block));
        // In this order: a waiting thread watches first, and then takes the stack.
        if (pool.isWatched()) {
            giveForeignBack();
        }
    }

    /** Returns to the shared part what other threads have released. Any thread. */
    void giveForeignBack() {
        Block list = takeForeign();
        if (list != null) {
            pool.giveShared(list, true);
        }
    }

    private @Nullable Block takeForeign() {
        Block top;
        do {
            top = (Block) FOREIGN.getVolatile(this);
            if (top == null || top == DETACHED) {
                return null;
            }
        } while (!FOREIGN.weakCompareAndSet(this, top, null));
        return top;
    }

    /** Makes the loop return all free blocks to the shared part, as soon as it runs. Any thread. */
    void askToFlush() {
        if (flushAsked.compareAndSet(false, true)) {
            RegisteredBufferPool.executeOn(loop, () -> {
                flushAsked.set(false);
                flushAll();
            });
        }
    }

    private void giveOwn(Block block) {
        int sizeClass = block.slab.sizeClass;
        block.next = heads[sizeClass];
        heads[sizeClass] = block;
        int count = ++counts[sizeClass];
        CACHED_BYTES.setOpaque(this, cachedBytes + block.lengthBytes);
        RELEASES.setOpaque(this, releases + 1);
        if (count > limits[sizeClass]) {
            flush(sizeClass, count - limits[sizeClass] / 2);
        }
    }

    /** Takes in what other threads have released. */
    private void collect() {
        Block block = takeForeign();
        while (block != null) {
            Block following = block.next;
            giveOwn(block);
            block = following;
        }
    }

    /** Gives blocks of one class to the shared part. */
    private void flush(int sizeClass, int count) {
        Block list = null;
        for (int i = 0; i < count; i++) {
            Block block = heads[sizeClass];
            if (block == null) {
                break;
            }
            heads[sizeClass] = block.next;
            counts[sizeClass]--;
            block.next = list;
            list = block;
        }
        if (counts[sizeClass] < lowest[sizeClass]) {
            lowest[sizeClass] = counts[sizeClass];
        }
        CACHED_BYTES.setOpaque(this, cachedBytes - (long) count * SizeClasses.bytesOf(sizeClass));
        pool.giveShared(list, false);
    }

    /** Returns to the shared part what was not needed since the last trim. */
    void trim() {
        assert isOwnedByCurrentThread();
        collect();
        for (int i = 0; i < heads.length; i++) {
            if (lowest[i] > 0) {
                flush(i, lowest[i]);
            }
            lowest[i] = counts[i];
        }
    }

    /** Returns all free blocks to the shared part; the cache stays in use. */
    void flushAll() {
        assert isOwnedByCurrentThread();
        collect();
        for (int i = 0; i < heads.length; i++) {
            if (counts[i] > 0) {
                flush(i, counts[i]);
            }
        }
    }

    /**
     * Returns all free blocks to the shared part and closes the cache: blocks released later go to the shared part.
     * Idempotent.
     */
    void detach() {
        assert isOwnedByCurrentThread();
        if (detached) {
            return;
        }
        detached = true;
        Future<?> task = trimming;
        if (task != null) {
            task.cancel(false);
        }
        Block block = (Block) FOREIGN.getAndSet(this, DETACHED);
        while (block != null) {
            Block following = block.next;
            giveOwn(block);
            block = following;
        }
        for (int i = 0; i < heads.length; i++) {
            if (counts[i] > 0) {
                flush(i, counts[i]);
            }
        }
        LoopCaches.forget(this);
        pool.forget(this);
    }
}
