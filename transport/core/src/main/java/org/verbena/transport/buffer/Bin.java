package org.verbena.transport.buffer;

import org.jspecify.annotations.Nullable;

/**
 * The slabs of one size class that have blocks to give: partly used ones first, whole ones last. Guarded by the pool's
 * lock.
 */
final class Bin {
    private @Nullable Slab head;
    private @Nullable Slab tail;

    /** Slabs here with all their blocks at home. */
    int wholeSlabs;

    @Nullable Slab head() {
        return head;
    }

    /** The first whole slab, or null. */
    @Nullable Slab firstWhole() {
        Slab slab = tail;
        return slab != null && slab.isWhole() ? slab : null;
    }

    void addFirst(Slab slab) {
        Slab old = head;
        slab.previous = null;
        slab.following = old;
        head = slab;
        if (old == null) {
            tail = slab;
        } else {
            old.previous = slab;
        }
    }

    void addLast(Slab slab) {
        Slab old = tail;
        slab.following = null;
        slab.previous = old;
        tail = slab;
        if (old == null) {
            head = slab;
        } else {
            old.following = slab;
        }
    }

    void remove(Slab slab) {
        Slab before = slab.previous;
        Slab after = slab.following;
        if (before == null) {
            head = after;
        } else {
            before.following = after;
        }
        if (after == null) {
            tail = before;
        } else {
            after.previous = before;
        }
        slab.previous = null;
        slab.following = null;
    }
}
