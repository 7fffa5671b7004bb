package org.verbena.transport.verbs;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.spi.ScatterGatherList;

/**
 * The regions that work requests use while they are out: a row of places for each slot of a queue. Most work requests
 * use one. Regions that the poster keeps open are not counted: that would take two writes per work request to memory
 * that all loops share. Not thread-safe; confined to the loop's thread.
 */
final class HeldRegions {
    private static final Logger LOG = LoggerFactory.getLogger(HeldRegions.class);

    private final int maxSges;

    /** The first region of each slot. */
    private final RegisteredMemory[] firsts;

    /** The others, a row for each slot. Made for the first work request that uses several. */
    private RegisteredMemory[] others = new RegisteredMemory[0];

    private final int[] counts;

    /** By slot. */
    private final boolean[] heldByPoster;

    HeldRegions(int slots, int maxSges) {
        this.maxSges = maxSges;
        firsts = new RegisteredMemory[slots];
        counts = new int[slots];
        heldByPoster = new boolean[slots];
    }

    private RegisteredMemory region(int slot, int i) {
        return i == 0 ? firsts[slot] : others[slot * (maxSges - 1) + i - 1];
    }

    private void setRegion(int slot, int i, RegisteredMemory region) {
        if (i == 0) {
            firsts[slot] = region;
        } else {
            others[slot * (maxSges - 1) + i - 1] = region;
        }
    }

    /**
     * Holds the regions of a list for a slot: all or none.
     *
     * @param slot holds nothing yet
     * @param list what to hold
     * @throws IllegalStateException one of them is closed
     */
    void hold(int slot, ScatterGatherList list) {
        int count = list.count();
        if (count > 1 && others.length == 0) {
            others = new RegisteredMemory[firsts.length * (maxSges - 1)];
        }
        boolean byPoster = list.isHeldByPoster();
        heldByPoster[slot] = byPoster;
        for (int i = 0; i < count; i++) {
            RegisteredMemory region = list.region(i);
            if (byPoster ? region.isGone() : !region.tryRetain()) {
                counts[slot] = i;
                release(slot);
                throw new IllegalStateException("registered memory at 0x" + Long.toHexString(region.address())
                        + " is closed: nothing can be posted with it");
            }
            setRegion(slot, i, region);
        }
        counts[slot] = count;
    }

    /** Releases what a slot holds. */
    void release(int slot) {
        int count = counts[slot];
        counts[slot] = 0;
        for (int i = 0; i < count; i++) {
            RegisteredMemory region = region(slot, i);
            setRegion(slot, i, GONE);
            if (!heldByPoster[slot]) {
                letGo(region);
            }
        }
    }

    private static void letGo(RegisteredMemory region) {
        try {
            region.release();
        } catch (RuntimeException refused) {
            // Its owner has gone, and the callers that wait for the completion cannot act on this.
            LOG.error("Memory that was closed while it was in use stays registered", refused);
        }
    }

    /** Adds what a slot holds to a list, with addresses and lengths from a row of places for each slot. */
    void addTo(ScatterGatherList list, int slot, long[] addresses, int[] lengths) {
        int first = slot * maxSges;
        for (int i = 0; i < counts[slot]; i++) {
            RegisteredMemory region = region(slot, i);
            list.addHeld(region, addresses[first + i] - region.address(), lengths[first + i]);
        }
    }

    /** Forgets what a slot holds without ever releasing it: the device may still use it. */
    void forget(int slot) {
        if (heldByPoster[slot]) {
            for (int i = 0; i < counts[slot]; i++) {
                region(slot, i).retain();
            }
        }
        counts[slot] = 0;
    }

    /** Releases all. */
    void releaseAll() {
        for (int slot = 0; slot < counts.length; slot++) {
            release(slot);
        }
    }

    /** Fills empty places, so that no region is kept alive. */
    @SuppressWarnings("NullAway") // an unused place is never read
    private static final RegisteredMemory GONE = null;
}
