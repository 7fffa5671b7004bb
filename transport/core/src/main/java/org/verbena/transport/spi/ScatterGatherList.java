package org.verbena.transport.spi;

/**
 * Pieces of registered memory, in order: what a work request gathers from or scatters to. A reusable carrier: {@link #clear()} and fill it
 * again; whoever takes it reads it during the call and keeps nothing. One thread at a time.
 */
public final class ScatterGatherList {
    private final RegisteredMemory[] regions;
    private final long[] addresses;
    private final int[] lengths;
    private int count;
    private long totalBytes;

    /**
     * An empty list.
     *
     * @param capacity the most pieces it can hold, 1 or more
     */
    public ScatterGatherList(int capacity) {
        regions = new RegisteredMemory[capacity];
        addresses = new long[capacity];
        lengths = new int[capacity];
    }

    /**
     * Forgets all pieces.
     *
     * @return this
     */
    public ScatterGatherList clear() {
        for (int i = 0; i < count; i++) {
            regions[i] = GONE;
        }
        count = 0;
        totalBytes = 0;
        return this;
    }

    /**
     * Adds a piece.
     *
     * @param region the memory it lies in
     * @param offsetBytes where it begins, from the start of the region
     * @param lengthBytes how long it is, 0 or more
     * @return this
     * @throws IndexOutOfBoundsException outside the region, or more pieces than the list can hold
     */
    public ScatterGatherList add(RegisteredMemory region, long offsetBytes, int lengthBytes) {
        if (offsetBytes < 0 || lengthBytes < 0 || offsetBytes > region.lengthBytes() - lengthBytes) {
            throw new IndexOutOfBoundsException("offset " + offsetBytes + " and length " + lengthBytes
                    + " are outside a region of " + region.lengthBytes() + " bytes");
        }
        if (count == regions.length) {
            throw new IndexOutOfBoundsException("a list of " + count + " pieces is full");
        }
        regions[count] = region;
        addresses[count] = region.address() + offsetBytes;
        lengths[count] = lengthBytes;
        count++;
        totalBytes += lengthBytes;
        return this;
    }

    /**
     * How many pieces there are.
     *
     * @return 0 or more
     */
    public int count() {
        return count;
    }

    /**
     * The sum of all lengths.
     *
     * @return bytes
     */
    public long totalBytes() {
        return totalBytes;
    }

    /**
     * The region of a piece.
     *
     * @param index 0 to count - 1
     * @return the region
     */
    public RegisteredMemory region(int index) {
        return regions[index];
    }

    /**
     * Where a piece begins.
     *
     * @param index 0 to count - 1
     * @return its virtual address
     */
    public long address(int index) {
        return addresses[index];
    }

    /**
     * How long a piece is.
     *
     * @param index 0 to count - 1
     * @return bytes
     */
    public int length(int index) {
        return lengths[index];
    }

    /** Stands where no piece is, so that a cleared list keeps no region alive. */
    @SuppressWarnings("NullAway") // an unused slot is never read
    private static final RegisteredMemory GONE = null;
}
