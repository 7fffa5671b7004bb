package org.verbena.transport.spi;

import org.verbena.transport.RegisteredMemory;

/**
 * Scatter/gather elements of a work request: ranges of registered memory, in order. Reusable: {@link #clear()} it and
 * fill it again; methods that take one read it during the call only. One thread at a time.
 */
public final class ScatterGatherList {
    private final RegisteredMemory[] regions;
    private final long[] addresses;
    private final int[] lengths;
    private int count;
    private long totalBytes;

    /** An element was added whose region the provider must hold while the work request is outstanding. */
    private boolean needsHold;

    /**
     * Creates an empty list.
     *
     * @param capacity the most elements that it can hold, 1 or more
     */
    public ScatterGatherList(int capacity) {
        regions = new RegisteredMemory[capacity];
        addresses = new long[capacity];
        lengths = new int[capacity];
    }

    /**
     * Removes all elements.
     *
     * @return this
     */
    public ScatterGatherList clear() {
        for (int i = 0; i < count; i++) {
            regions[i] = GONE;
        }
        count = 0;
        totalBytes = 0;
        needsHold = false;
        return this;
    }

    /**
     * Adds an element. The provider holds its region until the work request has completed.
     *
     * @param region the memory that contains it
     * @param offsetBytes its offset from the start of the region
     * @param lengthBytes its length, 0 or more
     * @return this
     * @throws IndexOutOfBoundsException outside the region, or more elements than the list can hold
     */
    public ScatterGatherList add(RegisteredMemory region, long offsetBytes, int lengthBytes) {
        append(region, offsetBytes, lengthBytes);
        needsHold = true;
        return this;
    }

    /**
     * Adds an element whose region the poster keeps registered until the work request has completed, as the holder of a
     * pooled buffer does. If all elements of a list were added this way, the provider does not retain their regions:
     * the reference count of a region is shared by all loops.
     *
     * @param region the memory that contains it
     * @param offsetBytes its offset from the start of the region
     * @param lengthBytes its length, 0 or more
     * @return this
     * @throws IndexOutOfBoundsException outside the region, or more elements than the list can hold
     */
    public ScatterGatherList addHeld(RegisteredMemory region, long offsetBytes, int lengthBytes) {
        append(region, offsetBytes, lengthBytes);
        return this;
    }

    private void append(RegisteredMemory region, long offsetBytes, int lengthBytes) {
        if (offsetBytes < 0 || lengthBytes < 0 || offsetBytes > region.lengthBytes() - lengthBytes) {
            throw new IndexOutOfBoundsException("offset " + offsetBytes + " and length " + lengthBytes
                    + " are outside a region of " + region.lengthBytes() + " bytes");
        }
        if (count == regions.length) {
            throw new IndexOutOfBoundsException("a list of " + count + " SGEs is full");
        }
        regions[count] = region;
        addresses[count] = region.address() + offsetBytes;
        lengths[count] = lengthBytes;
        count++;
        totalBytes += lengthBytes;
    }

    /**
     * Whether the poster keeps all regions registered until the work request has completed.
     *
     * @return false if the provider has to retain them ({@link RegisteredMemory#retain()})
     */
    public boolean isHeldByPoster() {
        return !needsHold;
    }

    /**
     * The number of elements.
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
     * The region of an element.
     *
     * @param index 0 to count - 1
     * @return the region
     */
    public RegisteredMemory region(int index) {
        return regions[index];
    }

    /**
     * The address of an element.
     *
     * @param index 0 to count - 1
     * @return its virtual address
     */
    public long address(int index) {
        return addresses[index];
    }

    /**
     * The length of an element.
     *
     * @param index 0 to count - 1
     * @return bytes
     */
    public int length(int index) {
        return lengths[index];
    }

    /** Fills unused places, so that a cleared list keeps no region alive. */
    @SuppressWarnings("NullAway") // an unused slot is never read
    private static final RegisteredMemory GONE = null;
}
