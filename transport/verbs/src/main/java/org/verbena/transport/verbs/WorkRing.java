package org.verbena.transport.verbs;

import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * What is out on one queue of an endpoint, in order: a ring of slots. Work also has numbers, from 0 in the order taken.
 * A slot is made when it is first used, since most connections never have many out. Not thread-safe; confined to the
 * loop's thread.
 *
 * <pre>
 *   slot   0   1   2   3   4   5   6   7
 *              ^ head          ^ next()          5 of 8 are taken: head + count, modulo the depth
 * </pre>
 *
 * @param <S> what a slot is
 */
final class WorkRing<S extends WorkSlot> {
    private final Supplier<S> maker;
    private final @Nullable S[] slots;
    private int limit;
    private int head;
    private int count;

    /** The number of the head's slot. */
    private long begin;

    /**
     * A ring of which nothing is taken.
     *
     * @param depth how many may be out
     * @param maker makes slots
     */
    @SuppressWarnings("unchecked") // only the maker's slots come into it
    WorkRing(int depth, Supplier<S> maker) {
        this.maker = maker;
        limit = depth;
        slots = (S[]) new WorkSlot[depth];
    }

    /** How many may be out: all slots unless {@link #limit} says otherwise. */
    int depth() {
        return limit;
    }

    /** The device has room for fewer than there are slots. Before the first is taken. */
    void limit(int max) {
        limit = Math.min(slots.length, max);
    }

    /** How many slots there are; {@link #next} comes round to the first after these. */
    int slots() {
        return slots.length;
    }

    int count() {
        return count;
    }

    /** The number of the first that is out, if any is. */
    long begin() {
        return begin;
    }

    /** The number of the next to be taken. */
    long end() {
        return begin + count;
    }

    boolean isFull() {
        return count == limit;
    }

    /** The slot that was taken first. */
    int head() {
        return head;
    }

    /** The slot that {@link #take} would take. */
    int next() {
        int slot = head + count;
        return slot < slots.length ? slot : slot - slots.length;
    }

    /** A slot, whether or not it is out. */
    S slot(int index) {
        S known = slots[index];
        if (known == null) {
            known = maker.get();
            slots[index] = known;
        }
        return known;
    }

    /** Takes the next slot. */
    void take() {
        count++;
    }

    /**
     * How many slots were taken before this one and are out still.
     *
     * @return at least {@link #count()} if the slot is not out
     */
    int position(int slot) {
        int position = slot - head;
        return position < 0 ? position + slots.length : position;
    }

    /**
     * Frees the head's slot, and releases its regions.
     *
     * @return the slot, whose content stays until it is taken again
     */
    S free() {
        S freed = slot(head);
        head = head + 1 == slots.length ? 0 : head + 1;
        count--;
        begin++;
        freed.release();
        return freed;
    }

    /** Keeps the regions of the head's slot registered for ever: the device may still use them. */
    void forgetHead() {
        slot(head).forget();
    }
}
