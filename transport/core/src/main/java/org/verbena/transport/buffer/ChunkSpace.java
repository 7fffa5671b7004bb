package org.verbena.transport.buffer;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * The shared part of a pool: its registered chunks, cut into slabs, and the limit on their bytes. It registers and
 * frees nothing itself. Guarded by the pool's lock.
 */
final class ChunkSpace {
    private final BufferPoolOptions options;
    private final LongSupplier nanoClock;
    private final Bin[] bins;
    private final List<Chunk> sharedChunks = new ArrayList<>();
    private final List<Slab> idleDedicated = new ArrayList<>();
    /** Changed with the lock held, read by any thread. */
    private final AtomicLong outBytes = new AtomicLong();

    /** What is registered, or reserved for a chunk that is being registered. */
    long registeredBytes;

    ChunkSpace(BufferPoolOptions options, LongSupplier nanoClock, int classes) {
        this.options = options;
        this.nanoClock = nanoClock;
        bins = new Bin[classes];
        for (int i = 0; i < classes; i++) {
            bins[i] = new Bin();
        }
    }

    /** What is out of the shared part: in buffers, or in the caches of loops. */
    long outBytes() {
        return outBytes.get();
    }

    /** A new chunk that is to be cut into slabs. */
    void add(Chunk chunk) {
        chunk.idleSinceNanos = nanoClock.getAsLong();
        sharedChunks.add(chunk);
    }

    /** A new chunk that is one block, which is taken. */
    Block addDedicated(Chunk chunk, int blockBytes) {
        outBytes.addAndGet(chunk.lengthBytes);
        return new Slab(chunk, Slab.DEDICATED, 0, chunk.pageMap.pages(), blockBytes).take();
    }

    /** Takes the block of an idle chunk of its own, if one fits; or null. */
    @Nullable Block takeDedicated(long neededBytes) {
        Slab slab = removeFittingDedicated(neededBytes);
        if (slab == null) {
            return null;
        }
        outBytes.addAndGet(slab.chunk.lengthBytes);
        return slab.take();
    }

    /** The smallest idle chunk that fits, unless more than half of it would be wasted. */
    private @Nullable Slab removeFittingDedicated(long neededBytes) {
        Slab best = null;
        // By index: an iterator is an object for each buffer.
        for (int i = 0; i < idleDedicated.size(); i++) {
            Slab slab = idleDedicated.get(i);
            long bytes = slab.chunk.lengthBytes;
            if (bytes >= neededBytes && bytes / 2 <= neededBytes && (best == null || bytes < best.chunk.lengthBytes)) {
                best = slab;
            }
        }
        if (best != null) {
            idleDedicated.remove(best);
        }
        return best;
    }

    /** How long a new chunk may be, its bytes now reserved, or 0 at the limit. */
    long reserve(long neededBytes) {
        long leftBytes = options.maxRegisteredBytes() - registeredBytes;
        if (leftBytes < neededBytes) {
            return 0;
        }
        long bytes = Math.min(options.chunkBytes(), leftBytes / Chunk.PAGE_BYTES * Chunk.PAGE_BYTES);
        registeredBytes += bytes;
        return bytes;
    }

    /**
     * How long a chunk for one large buffer may be, its bytes now reserved, or 0 at the limit: as long as its size
     * class says, so that the next buffer of about this size fits as well, or else just long enough.
     */
    long reserveDedicated(int bytes, long neededBytes) {
        long leftBytes = options.maxRegisteredBytes() - registeredBytes;
        long classBytes = dedicatedBytes(bytes);
        long growBytes = classBytes <= leftBytes ? classBytes : neededBytes <= leftBytes ? neededBytes : 0;
        registeredBytes += growBytes;
        return growBytes;
    }

    static long dedicatedBytes(int bytes) {
        return roundedToPages(
                bytes <= BufferPoolOptions.MAX_CHUNK_BYTES ? SizeClasses.bytesOf(SizeClasses.indexOf(bytes)) : bytes);
    }

    static long roundedToPages(int bytes) {
        return (bytes + (long) Chunk.PAGE_BYTES - 1) / Chunk.PAGE_BYTES * Chunk.PAGE_BYTES;
    }

    @Nullable Block take(int sizeClass, int slabPages, int max) {
        Bin bin = bins[sizeClass];
        Block list = null;
        for (int taken = 0; taken < max; taken++) {
            Slab slab = bin.head();
            if (slab == null) {
                slab = list == null ? cut(sizeClass, slabPages) : null;
                if (slab == null) {
                    break;
                }
                bin.addFirst(slab);
                bin.wholeSlabs++;
            }
            if (slab.isWhole()) {
                bin.wholeSlabs--;
            }
            Block block = slab.take();
            if (slab.home == 0) {
                bin.remove(slab);
            }
            outBytes.addAndGet(slab.blockBytes);
            block.next = list;
            list = block;
        }
        return list;
    }

    /** Cuts a slab out of the first chunk with room, or null. */
    private @Nullable Slab cut(int sizeClass, int slabPages) {
        Slab slab = tryCut(sizeClass, slabPages);
        return slab != null || !dissolveWholeSlabs() ? slab : tryCut(sizeClass, slabPages);
    }

    private @Nullable Slab tryCut(int sizeClass, int slabPages) {
        for (int i = 0; i < sharedChunks.size(); i++) {
            Chunk chunk = sharedChunks.get(i);
            int page = chunk.pageMap.take(slabPages);
            if (page >= 0) {
                return new Slab(chunk, sizeClass, page, slabPages, SizeClasses.bytesOf(sizeClass));
            }
        }
        return null;
    }

    /** Takes back a block; if the pool is closed, no whole slab is kept. */
    void give(Block block, boolean closed) {
        Slab slab = block.slab;
        boolean wasEmpty = slab.home == 0;
        slab.give(block);
        if (slab.sizeClass == Slab.DEDICATED) {
            outBytes.addAndGet(-slab.chunk.lengthBytes);
            slab.chunk.idleSinceNanos = nanoClock.getAsLong();
            idleDedicated.add(slab);
            return;
        }
        outBytes.addAndGet(-slab.blockBytes);
        Bin bin = bins[slab.sizeClass];
        if (!slab.isWhole()) {
            if (wasEmpty) {
                bin.addFirst(slab);
            }
            return;
        }
        if (!wasEmpty) {
            bin.remove(slab);
        }
        // Whole slabs are kept until the next trim, or until another size needs their pages: their blocks and buffers
        // are ready for use.
        if (closed) {
            dissolve(slab);
        } else {
            bin.addLast(slab);
            bin.wholeSlabs++;
        }
    }

    private void dissolve(Slab slab) {
        Chunk chunk = slab.chunk;
        chunk.pageMap.give(slab.firstPage, slab.pages);
        if (chunk.isWhole()) {
            chunk.idleSinceNanos = nanoClock.getAsLong();
        }
    }

    /** Returns the pages of all slabs whose blocks are all free. */
    boolean dissolveWholeSlabs() {
        boolean any = false;
        for (Bin bin : bins) {
            while (bin.wholeSlabs > 0) {
                Slab slab = bin.firstWhole();
                if (slab == null) {
                    throw new IllegalStateException("a bin lost a slab");
                }
                bin.remove(slab);
                bin.wholeSlabs--;
                dissolve(slab);
                any = true;
            }
        }
        return any;
    }

    /** How much is missing below the limit for so many bytes. */
    long missing(long bytes) {
        return Math.min(bytes, options.maxRegisteredBytes()) - (options.maxRegisteredBytes() - registeredBytes);
    }

    /**
     * Removes chunks that have been idle long enough: those of large buffers first, and of these the longest idle. The
     * caller frees them without the lock.
     *
     * @param idleNanos how long is long enough
     * @param enoughBytes when to stop
     */
    @Nullable Chunk removeIdleChunks(long idleNanos, long enoughBytes) {
        long nowNanos = nanoClock.getAsLong();
        long leavingBytes = 0;
        Chunk leaving = null;
        for (Iterator<Slab> i = idleDedicated.iterator(); leavingBytes < enoughBytes && i.hasNext(); ) {
            Chunk chunk = i.next().chunk;
            if (nowNanos - chunk.idleSinceNanos >= idleNanos) {
                i.remove();
                leavingBytes += chunk.lengthBytes;
                chunk.next = leaving;
                leaving = chunk;
            }
        }
        for (Iterator<Chunk> i = sharedChunks.iterator(); leavingBytes < enoughBytes && i.hasNext(); ) {
            Chunk chunk = i.next();
            if (chunk.isWhole() && nowNanos - chunk.idleSinceNanos >= idleNanos) {
                i.remove();
                leavingBytes += chunk.lengthBytes;
                chunk.next = leaving;
                leaving = chunk;
            }
        }
        return leaving;
    }
}
