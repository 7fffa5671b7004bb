package org.verbena.transport.buffer;

import org.jspecify.annotations.Nullable;

/** A run of a chunk's pages, cut into blocks of one size. Guarded by the pool's lock. */
final class Slab {
    /** The size class of a slab that is a whole chunk of its own. */
    static final int DEDICATED = -1;

    /** From this size on a slab is a single block: such sizes are whole pages, so nothing is lost. */
    private static final int SINGLE_BLOCK_BYTES = 32 << 10;

    /** A slab of small blocks is at least this long, so that slabs change hands rarely. */
    private static final int MIN_BYTES = 32 << 10;

    private static final int MIN_BLOCKS = 8;

    final Chunk chunk;
    final int sizeClass;
    final int firstPage;
    final int pages;
    final int blockBytes;
    final int blocks;

    /** How many blocks are here and not with a cache or buffer. */
    int home;

    /** The neighbours in the list of slabs that have blocks; see {@link Bin}. */
    @Nullable Slab previous;

    @Nullable Slab following;

    private int cut;
    private @Nullable Block first;

    Slab(Chunk chunk, int sizeClass, int firstPage, int pages, int blockBytes) {
        this.chunk = chunk;
        this.sizeClass = sizeClass;
        this.firstPage = firstPage;
        this.pages = pages;
        this.blockBytes = blockBytes;
        blocks = sizeClass == DEDICATED ? 1 : (int) ((long) pages * Chunk.PAGE_BYTES / blockBytes);
        home = blocks;
    }

    /** How many pages a slab of such blocks takes. */
    static int pagesFor(int blockBytes) {
        int bytes = blockBytes >= SINGLE_BLOCK_BYTES ? blockBytes : Math.max(MIN_BYTES, MIN_BLOCKS * blockBytes);
        return (bytes + Chunk.PAGE_BYTES - 1) / Chunk.PAGE_BYTES;
    }

    boolean isWhole() {
        return home == blocks;
    }

    /** Takes a block; there must be one at home. */
    Block take() {
        home--;
        Block block = first;
        if (block != null) {
            first = block.next;
            block.next = null;
            return block;
        }
        return new Block(this, (long) firstPage * Chunk.PAGE_BYTES + (long) cut++ * blockBytes, blockBytes);
    }

    /** Takes a block back. */
    void give(Block block) {
        block.home = null;
        block.next = first;
        first = block;
        home++;
    }
}
