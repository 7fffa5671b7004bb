package org.verbena.transport.buffer;

import org.jspecify.annotations.Nullable;

/**
 * A piece of a chunk that one buffer lives in, with the recycled buffer object for it. It belongs to its holder: the
 * slab it lies in, a loop's cache, or the buffer. Only the buffer refers to it while the buffer is in use, so that
 * Netty's leak detector can see a lost one.
 */
final class Block {
    final Slab slab;
    final long offsetBytes;
    final int lengthBytes;

    /** The buffer that lives here; made at the first use. */
    @Nullable RegisteredByteBuf buffer;

    /**
     * The cache that takes the block back, or null for the shared part of the pool. Set at allocation, read at release.
     */
    @Nullable LoopCache home;

    /** The next block in its holder's list. */
    @Nullable Block next;

    Block(Slab slab, long offsetBytes, int lengthBytes) {
        this.slab = slab;
        this.offsetBytes = offsetBytes;
        this.lengthBytes = lengthBytes;
    }
}
