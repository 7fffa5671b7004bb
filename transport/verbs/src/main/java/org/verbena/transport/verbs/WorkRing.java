package org.verbena.transport.verbs;

import org.verbena.transport.spi.ScatterGatherList;

/**
 * What is out on one queue of an endpoint, in order: a ring of slots, each with a work id and the regions that the work
 * holds. Work also has numbers, from 0 in the order taken. Not thread-safe; confined to the loop's thread.
 *
 * <pre>
 *   slot   0   1   2   3   4   5   6   7
 *              ^ head          ^ next()          5 of 8 are taken: head + count, modulo the depth
 * </pre>
 */
class WorkRing {
    private final int depth;
    private int limit;
    private final long[] workIds;
    private final HeldRegions held;
    private int head;
    private int count;

    /** The number of the head's slot. */
    private long begin;

    WorkRing(int depth, int maxSges) {
        this.depth = depth;
        limit = depth;
        workIds = new long[depth];
        held = new HeldRegions(depth, maxSges);
    }

    /** How many may be out: all slots unless {@link #limit} says otherwise. */
    final int depth() {
        return limit;
    }

    /** The device has room for fewer than there are slots. Before the first is taken. */
    final void limit(int most) {
        limit = Math.min(depth, most);
    }

    final int count() {
        return count;
    }

    /** The number of the first that is out, if any is. */
    final long begin() {
        return begin;
    }

    /** The number of the next to be taken. */
    final long end() {
        return begin + count;
    }

    final boolean isFull() {
        return count == limit;
    }

    /** The slot that was taken first. */
    final int head() {
        return head;
    }

    /** The slot that {@link #take} would take. */
    final int next() {
        int slot = head + count;
        return slot < depth ? slot : slot - depth;
    }

    /**
     * Holds regions for the next slot.
     *
     * @throws IllegalStateException one is closed; nothing is held
     */
    final void holdForNext(ScatterGatherList sges) {
        held.hold(next(), sges);
    }

    /** Releases what {@link #holdForNext} held. */
    final void releaseNext() {
        held.release(next());
    }

    /** Takes the next slot. */
    final void take(long workId) {
        workIds[next()] = workId;
        count++;
    }

    final long workId(int slot) {
        return workIds[slot];
    }

    /**
     * How many slots were taken before this one and are out still.
     *
     * @return at least {@link #count()} if the slot is not out
     */
    final int position(int slot) {
        int position = slot - head;
        return position < 0 ? position + depth : position;
    }

    /** Frees the head's slot, and releases its regions. */
    void free() {
        int slot = head;
        head = slot + 1 == depth ? 0 : slot + 1;
        count--;
        begin++;
        held.release(slot);
    }

    /** Keeps the regions of the head's slot registered for ever: the device may still use them. */
    final void forgetHead() {
        held.forget(head);
    }
}
