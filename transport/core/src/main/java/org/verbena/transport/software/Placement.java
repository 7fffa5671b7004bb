package org.verbena.transport.software;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/**
 * Where the bytes of an incoming message go: the SGEs of a receive, or of a read, filled front to back. Not
 * thread-safe; confined to the loop's thread.
 */
public final class Placement {
    private static final SoftwareMemory[] NO_REGIONS = {};
    private static final long[] NO_OFFSETS = {};
    private static final int[] NO_LENGTHS = {};

    // Each has room for as many SGEs as the longest list so far.
    private @Nullable SoftwareMemory[] regions = NO_REGIONS;
    private long[] offsets = NO_OFFSETS;
    private int[] lengths = NO_LENGTHS;

    private final RegionView view = new RegionView();
    private long workId;
    private int capacityBytes;
    private int count;
    private int sge;
    private int sgeBytes;
    private int placedBytes;
    private boolean active;
    private boolean heldByOthers;

    /**
     * Begins a message. The SGEs follow.
     *
     * @param id of the receive
     * @param totalBytes room in all SGEs
     * @param sges how many there will be
     * @param held whether another holder keeps the regions open until the message has ended
     * @throws IllegalStateException a message is in progress, whose receive would be lost
     */
    public void begin(long id, int totalBytes, int sges, boolean held) {
        if (active) {
            throw new IllegalStateException("work " + id + " where " + workId + " is in progress");
        }
        if (regions.length == 0 || regions.length < sges) {
            int room = Math.max(1, sges);
            regions = new @Nullable SoftwareMemory[room];
            offsets = new long[room];
            lengths = new int[room];
        }
        workId = id;
        capacityBytes = totalBytes;
        count = sges;
        sge = 0;
        sgeBytes = 0;
        placedBytes = 0;
        active = true;
        heldByOthers = held;
    }

    public void setSge(int index, SoftwareMemory region, long offset, int length) {
        regions[index] = region;
        offsets[index] = offset;
        lengths[index] = length;
    }

    /** Whether a message is in progress. */
    public boolean isActive() {
        return active;
    }

    public long workId() {
        return workId;
    }

    public int capacityBytes() {
        return capacityBytes;
    }

    public int placedBytes() {
        return placedBytes;
    }

    /**
     * Places bytes, which must fit.
     *
     * @param from where they are
     * @param at from which offset
     * @param bytes how many
     */
    public void place(MemorySegment from, long at, int bytes) {
        int left = bytes;
        long source = at;
        while (left > 0) {
            int room = lengths[sge] - sgeBytes;
            if (room == 0) {
                sge++;
                sgeBytes = 0;
                continue;
            }
            int now = Math.min(room, left);
            MemorySegment.copy(from, source, region().segment(), offsets[sge] + sgeBytes, now);
            sgeBytes += now;
            source += now;
            left -= now;
        }
        placedBytes += bytes;
    }

    @SuppressWarnings("NullAway") // the current SGE is always there
    private SoftwareMemory region() {
        return regions[sge];
    }

    /**
     * The next room in one piece, for the socket to read into.
     *
     * @param max at most so many bytes
     * @return a buffer with something remaining, if there is room at all
     */
    public ByteBuffer room(int max) {
        while (lengths[sge] == sgeBytes && sge < count - 1) {
            sge++;
            sgeBytes = 0;
        }
        return view.aim(region(), offsets[sge] + sgeBytes, Math.min(max, lengths[sge] - sgeBytes));
    }

    /**
     * Counts what the socket has read into {@link #room}.
     *
     * @param bytes how many
     */
    public void placed(int bytes) {
        sgeBytes += bytes;
        placedBytes += bytes;
    }

    /** Ends the message and releases its regions, unless another holder has them. */
    public void end() {
        for (int i = 0; i < count; i++) {
            SoftwareMemory region = regions[i];
            regions[i] = null;
            if (region != null && !heldByOthers) {
                region.release();
            }
        }
        count = 0;
        active = false;
        view.forgetIfClosed();
    }
}
