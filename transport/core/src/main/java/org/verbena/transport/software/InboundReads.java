package org.verbena.transport.software;

import org.jspecify.annotations.Nullable;

/**
 * Reads and atomics of the peer that wait for their responses to go out, oldest first. Bounded by the read depth that
 * was agreed on. It holds no region: access is checked again for each segment of a response. Not thread-safe; confined
 * to the loop's thread.
 */
public final class InboundReads {
    private static final SoftwareMemory[] NO_SOURCES = {};
    private static final boolean[] NO_FLAGS = {};
    private static final int[] NO_NUMBERS = {};
    private static final long[] NO_OFFSETS = {};

    private final int depth;
    private final int mask;

    // Made for the first, as the peers of most connections never read.
    private @Nullable SoftwareMemory[] sources = NO_SOURCES;
    private boolean[] atomic = NO_FLAGS;
    private int[] sinkStags = NO_NUMBERS;
    private long[] sinkOffsets = NO_OFFSETS;
    private long[] sourceOffsets = NO_OFFSETS;
    private int[] lengths = NO_NUMBERS;
    private int[] doneBytes = NO_NUMBERS;
    private long[] values = NO_OFFSETS;
    private long head;
    private long tail;

    /**
     * An empty queue.
     *
     * @param depth how many the peer may have out
     */
    public InboundReads(int depth) {
        this.depth = depth;
        mask = Integer.highestOneBit(Math.max(1, depth * 2 - 1)) - 1;
    }

    private void makeSlots() {
        int slots = mask + 1;
        sources = new @Nullable SoftwareMemory[slots];
        atomic = new boolean[slots];
        sinkStags = new int[slots];
        sinkOffsets = new long[slots];
        sourceOffsets = new long[slots];
        lengths = new int[slots];
        doneBytes = new int[slots];
        values = new long[slots];
    }

    public boolean isFull() {
        return tail - head >= depth;
    }

    public boolean isEmpty() {
        return tail == head;
    }

    /**
     * Adds a read.
     *
     * @param source the region; null for no bytes
     * @param sourceOffset from the region's start
     * @param length how much
     * @param sinkStag where the peer wants it
     * @param sinkOffset and from which offset
     */
    public void addRead(@Nullable SoftwareMemory source, long sourceOffset, int length, int sinkStag, long sinkOffset) {
        int slot = add();
        sources[slot] = source;
        atomic[slot] = false;
        sourceOffsets[slot] = sourceOffset;
        lengths[slot] = length;
        doneBytes[slot] = 0;
        sinkStags[slot] = sinkStag;
        sinkOffsets[slot] = sinkOffset;
    }

    /**
     * Adds the result of an atomic.
     *
     * @param requestId comes back to the peer
     * @param value what was there before
     */
    public void addAtomic(int requestId, long value) {
        int slot = add();
        atomic[slot] = true;
        sinkStags[slot] = requestId;
        values[slot] = value;
    }

    private int add() {
        if (sources.length == 0) {
            makeSlots();
        }
        return (int) tail++ & mask;
    }

    private int first() {
        return (int) head & mask;
    }

    /** Whether the oldest is an atomic. */
    public boolean isAtomic() {
        return atomic[first()];
    }

    /** Atomic: the peer's number for it. */
    public int requestId() {
        return sinkStags[first()];
    }

    /** Atomic: the old value. */
    public long value() {
        return values[first()];
    }

    /** Read: the region; null for no bytes. */
    public @Nullable SoftwareMemory source() {
        return sources[first()];
    }

    /** Read: where the rest begins in the region. */
    public long sourceOffset() {
        return sourceOffsets[first()] + doneBytes[first()];
    }

    public int sinkStag() {
        return sinkStags[first()];
    }

    /** Read: where the rest goes at the peer. */
    public long sinkOffset() {
        return sinkOffsets[first()] + doneBytes[first()];
    }

    public int remainingBytes() {
        return lengths[first()] - doneBytes[first()];
    }

    public void advance(int bytes) {
        doneBytes[first()] += bytes;
    }

    public void removeFirst() {
        sources[first()] = null;
        head++;
    }

    public void clear() {
        while (!isEmpty()) {
            removeFirst();
        }
    }
}
