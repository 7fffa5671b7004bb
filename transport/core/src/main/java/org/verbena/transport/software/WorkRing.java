package org.verbena.transport.software;

import org.jspecify.annotations.Nullable;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.spi.ScatterGatherList;

/**
 * Posted work, oldest first, in arrays that are used round and round. They grow with what is really posted, up to the
 * depth, so that an idle endpoint is small. Not thread-safe; confined to the loop's thread.
 *
 * <pre>{@code
 *   head           tail
 *    v              v
 *  | a | b | c | d |   |   |     slot = sequence number & mask
 * }</pre>
 */
public class WorkRing {
    /** Most connections never have more out. */
    private static final int FIRST_SLOTS = 2;

    private final int depth;
    private final int maxSges;

    private int mask;
    private long head;
    private long tail;
    private long[] workIds;
    private int[] sgeCounts;
    private int[] totals;

    /** By slot: whether the poster keeps the regions open, so that they are not counted in and out here. */
    private boolean[] heldByPoster;

    private @Nullable SoftwareMemory[] regions;
    private long[] offsets;
    private int[] lengths;

    /**
     * An empty ring.
     *
     * @param depth the most it holds
     * @param maxSges the most SGEs of a work request
     */
    public WorkRing(int depth, int maxSges) {
        this.depth = depth;
        this.maxSges = maxSges;
        int slots = Math.min(FIRST_SLOTS, Integer.highestOneBit(depth * 2 - 1));
        mask = slots - 1;
        workIds = new long[slots];
        sgeCounts = new int[slots];
        totals = new int[slots];
        heldByPoster = new boolean[slots];
        regions = new @Nullable SoftwareMemory[slots * maxSges];
        offsets = new long[slots * maxSges];
        lengths = new int[slots * maxSges];
    }

    public final int depth() {
        return depth;
    }

    public final int maxSges() {
        return maxSges;
    }

    public final boolean isFull() {
        return tail - head == depth;
    }

    public final boolean isEmpty() {
        return tail == head;
    }

    public final int size() {
        return (int) (tail - head);
    }

    public final long head() {
        return head;
    }

    public final long tail() {
        return tail;
    }

    /** Slots there are now. */
    public final int capacity() {
        return mask + 1;
    }

    public final int slot(long sequence) {
        return (int) sequence & mask;
    }

    /**
     * Adds work at the tail and holds its regions, unless the poster does. There must be room.
     *
     * @param workId as posted
     * @param buffers checked before
     * @return the sequence number
     * @throws IllegalStateException a region was closed; nothing was added
     */
    public final long add(long workId, ScatterGatherList buffers) {
        if (size() > mask) {
            grow();
        }
        int slot = slot(tail);
        int count = buffers.count();
        int base = slot * maxSges;
        boolean byPoster = buffers.isHeldByPoster();
        heldByPoster[slot] = byPoster;
        for (int i = 0; i < count; i++) {
            SoftwareMemory region = (SoftwareMemory) buffers.region(i);
            if (byPoster ? region.isGone() : region.isClosed() || !region.tryRetain()) {
                sgeCounts[slot] = i;
                releaseRegions(slot);
                throw new IllegalStateException("SGE " + i + " lies in registered memory that is closed");
            }
            regions[base + i] = region;
            offsets[base + i] = buffers.address(i) - region.address();
            lengths[base + i] = buffers.length(i);
        }
        workIds[slot] = workId;
        sgeCounts[slot] = count;
        totals[slot] = (int) buffers.totalBytes();
        return tail++;
    }

    private void grow() {
        int slots = mask + 1;
        int larger = slots * 2;
        long[] newIds = new long[larger];
        int[] newCounts = new int[larger];
        int[] newTotals = new int[larger];
        boolean[] newHeldByPoster = new boolean[larger];
        @Nullable SoftwareMemory[] newRegions = new @Nullable SoftwareMemory[larger * maxSges];
        long[] newOffsets = new long[larger * maxSges];
        int[] newLengths = new int[larger * maxSges];
        for (long s = head; s < tail; s++) {
            int from = (int) s & mask;
            int to = (int) s & larger - 1;
            newIds[to] = workIds[from];
            newCounts[to] = sgeCounts[from];
            newTotals[to] = totals[from];
            newHeldByPoster[to] = heldByPoster[from];
            System.arraycopy(regions, from * maxSges, newRegions, to * maxSges, maxSges);
            System.arraycopy(offsets, from * maxSges, newOffsets, to * maxSges, maxSges);
            System.arraycopy(lengths, from * maxSges, newLengths, to * maxSges, maxSges);
        }
        onGrow(mask, larger - 1);
        workIds = newIds;
        sgeCounts = newCounts;
        totals = newTotals;
        heldByPoster = newHeldByPoster;
        regions = newRegions;
        offsets = newOffsets;
        lengths = newLengths;
        mask = larger - 1;
    }

    /**
     * The ring doubles: what a subclass keeps by slot must move.
     *
     * @param oldMask before
     * @param newMask after
     */
    protected void onGrow(int oldMask, int newMask) {}

    public final long workId(int slot) {
        return workIds[slot];
    }

    public final int sgeCount(int slot) {
        return sgeCounts[slot];
    }

    public final int totalBytes(int slot) {
        return totals[slot];
    }

    @SuppressWarnings("NullAway") // only asked for SGEs that are there
    public final SoftwareMemory region(int slot, int sge) {
        return regions[slot * maxSges + sge];
    }

    public final long offset(int slot, int sge) {
        return offsets[slot * maxSges + sge];
    }

    public final int length(int slot, int sge) {
        return lengths[slot * maxSges + sge];
    }

    /** Releases a request's regions: its payload is elsewhere. */
    public final void releaseRegions(int slot) {
        int base = slot * maxSges;
        for (int i = 0; i < sgeCounts[slot]; i++) {
            RegisteredMemory region = regions[base + i];
            regions[base + i] = null;
            if (region != null && !heldByPoster[slot]) {
                region.release();
            }
        }
        sgeCounts[slot] = 0;
    }

    /** Takes the oldest work off, its regions with it. */
    public final void removeHead() {
        releaseRegions(slot(head));
        head++;
    }

    /**
     * Moves the oldest work into a receive in progress, which holds its regions from now on.
     *
     * @param receive empty
     */
    public final void moveHeadTo(Placement receive) {
        move(slot(head), receive);
        head++;
    }

    /**
     * Moves the newest work into a receive in progress: where the order does not matter, its memory is the likeliest to
     * be in the processor's caches.
     *
     * @param receive empty
     */
    public final void moveTailTo(Placement receive) {
        tail--;
        move(slot(tail), receive);
    }

    private void move(int slot, Placement receive) {
        int base = slot * maxSges;
        int count = sgeCounts[slot];
        receive.begin(workIds[slot], totals[slot], count, heldByPoster[slot]);
        for (int i = 0; i < count; i++) {
            receive.setSge(i, region(slot, i), offsets[base + i], lengths[base + i]);
            regions[base + i] = null;
        }
        sgeCounts[slot] = 0;
    }
}
