package org.verbena.transport.verbs;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.spi.ScatterGatherList;

/**
 * A place of a queue in which one work request is out at a time: its id, and the regions that it uses. It is one
 * object, so that posting and completing touch few lines of the processor's cache. Regions that the poster keeps open
 * are not counted: that would take two writes per work request to memory that all loops share. Not thread-safe;
 * confined to the loop's thread.
 */
class WorkSlot {
    private static final Logger LOG = LoggerFactory.getLogger(WorkSlot.class);

    private static final RegisteredMemory[] NONE = {};

    /** As posted. */
    long workId;

    private int count;
    private boolean heldByPoster;
    private RegisteredMemory first = GONE;

    /** The regions behind the first, as many as the longest list had. */
    private RegisteredMemory[] more = NONE;

    /**
     * Holds the regions of a list: all or none.
     *
     * @param list what to hold; nothing is held yet
     * @throws IllegalStateException one of them is closed
     */
    final void hold(ScatterGatherList list) {
        int all = list.count();
        boolean byPoster = list.isHeldByPoster();
        heldByPoster = byPoster;
        if (all > more.length + 1) {
            more = new RegisteredMemory[all - 1];
        }
        for (int i = 0; i < all; i++) {
            RegisteredMemory region = list.region(i);
            if (byPoster ? region.isGone() : !region.tryRetain()) {
                count = i;
                release();
                throw new IllegalStateException("registered memory at 0x" + Long.toHexString(region.address())
                        + " is closed: nothing can be posted with it");
            }
            set(i, region);
        }
        count = all;
    }

    private void set(int index, RegisteredMemory region) {
        if (index == 0) {
            first = region;
        } else {
            more[index - 1] = region;
        }
    }

    /** Releases what it holds, if anything. */
    final void release() {
        int held = count;
        count = 0;
        for (int i = 0; i < held; i++) {
            RegisteredMemory region = region(i);
            set(i, GONE);
            if (!heldByPoster) {
                letGo(region);
            }
        }
    }

    private static void letGo(RegisteredMemory region) {
        try {
            region.release();
        } catch (RuntimeException refused) {
            // The slot's owner has gone, and the callers that wait for the completion cannot act on this.
            LOG.error("Memory that was closed while it was in use stays registered", refused);
        }
    }

    /** Forgets what it holds without ever releasing it: the device may still use it. */
    final void forget() {
        if (heldByPoster) {
            for (int i = 0; i < count; i++) {
                region(i).retain();
            }
        }
        count = 0;
    }

    /** How many regions it holds. */
    final int regionCount() {
        return count;
    }

    /** One that it holds. */
    final RegisteredMemory region(int index) {
        return index == 0 ? first : more[index - 1];
    }

    /** Fills empty places, so that no region is kept alive. */
    @SuppressWarnings("NullAway") // an unused place is never read
    private static final RegisteredMemory GONE = null;
}
