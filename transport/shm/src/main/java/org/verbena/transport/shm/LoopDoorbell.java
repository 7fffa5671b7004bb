package org.verbena.transport.shm;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.BitSet;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.shm.ffm.SharedFile;

/**
 * The connections of one loop with one process, and the {@link Doorbell} at which that process rings for them. No other
 * process has that page: what a peer scribbles there can make this loop look at the peer's own connections too often or
 * too late, and at no others.
 *
 * <p>A connection that is the only one with its process is polled by itself. With the second one the page is made, and
 * both peers learn where to ring. A peer that cannot map it wakes each connection by itself.
 *
 * <p>While the connections are few, the loop looks at each of them, and its peer rings only when it sleeps: to look at
 * a ring costs less than to set and take a bit. With more, it looks at those whose bits are set. Not thread-safe;
 * confined to the loop's thread.
 */
final class LoopDoorbell extends Polled {
    private static final Logger LOG = LoggerFactory.getLogger(LoopDoorbell.class);

    private final ShmIoHandler io;
    private final PeerProcess process;

    /** By slot; the length is a multiple of a word's bits. */
    private @Nullable Member[] members = new Member[Long.SIZE];

    private final BitSet taken = new BitSet();
    private int count;

    /** The slots up to the last that is taken. */
    private int slots;

    /** The members are few, and each is looked at. */
    private boolean isLooking = true;

    /** Members that are to be polled again although nobody has rung: not all was done. */
    private long[] again = new long[1];

    /** Null before the second member. */
    private @Nullable SharedFile file;

    private @Nullable MemorySegment memory;

    private boolean polling;
    private long lastSleep;

    /** A connection. */
    interface Member {
        /** Sends the peer where to ring for this connection. */
        void announceDoorbell(SharedFile page, int slot);

        /** The peer has rung, or the connection has asked for another turn. Returns how many records there were. */
        int pollRung();

        /** The peer need not ring: looks for what it has done, if it rings here at all. Returns the same. */
        int look();

        /** Asks the peer to ring for all that it does; false if there is something to do already. */
        boolean awaitRing();
    }

    LoopDoorbell(ShmIoHandler io, PeerProcess process) {
        this.io = io;
        this.process = process;
    }

    /**
     * A connection with the process has come up; {@link #leave} follows.
     *
     * @return its slot; -1 if there is none left, and nothing follows
     */
    int join(Member member) {
        int slot = taken.nextClearBit(0);
        if (slot >= Doorbell.MOST) {
            return -1;
        }
        taken.set(slot);
        count++;
        if (slot >= members.length) {
            members = Arrays.copyOf(members, 2 * members.length);
            again = Arrays.copyOf(again, members.length / Long.SIZE);
        }
        members[slot] = member;
        onSlotsChanged();
        return slot;
    }

    private void onSlotsChanged() {
        slots = taken.length();
        boolean isFew = slots <= ShmIoHandler.FEW;
        if (isFew == isLooking) {
            return;
        }
        isLooking = isFew;
        if (!isAwake()) {
            return; // all have been asked to ring
        }
        awake();
        if (!isFew) {
            for (int slot = 0; slot < slots; slot++) {
                Member member = members[slot];
                if (member != null && !member.awaitRing()) {
                    again[slot / Long.SIZE] |= 1L << slot;
                }
            }
        }
    }

    /**
     * Sends the peer of a member that has joined where to ring for it. The page is made for the second member, or for a
     * later one if that fails; then the peers of the members before it are sent the same.
     *
     * @return whether it was sent
     */
    boolean announce(Member joined, int slot) {
        SharedFile known = file;
        if (known != null) {
            joined.announceDoorbell(known, slot);
            return true;
        }
        SharedFile made = count == 1 ? null : open();
        if (made == null) {
            return false;
        }
        file = made;
        memory = made.memory();
        io.wake(this);
        for (int i = taken.nextSetBit(0); i >= 0; i = taken.nextSetBit(i + 1)) {
            Member member = members[i];
            if (member != null) {
                member.announceDoorbell(made, i);
            }
        }
        return true;
    }

    private @Nullable SharedFile open() {
        try {
            process.mappings().addRing();
            try {
                return SharedFile.create("verbena-doorbell", Doorbell.BYTES, false);
            } catch (IOException | RuntimeException | Error e) {
                process.mappings().forgetRing();
                throw e;
            }
        } catch (IOException e) {
            LOG.debug("no doorbell for the connections with {}; each is polled by itself", process, e);
            return null;
        }
    }

    void leave(int slot) {
        members[slot] = null;
        again[slot / Long.SIZE] &= ~(1L << slot);
        taken.clear(slot);
        count--;
        onSlotsChanged();
        if (count == 0 && !polling) {
            close();
        }
    }

    private void close() {
        io.removeAwake(this);
        io.forget(process, this);
        SharedFile old = file;
        if (old != null) {
            file = null;
            memory = null;
            old.close();
            process.mappings().removeRing(old.memory());
        }
    }

    /** The peer may have rung and sent a wake-up, or is about to: the loop looks by itself for a while. */
    void wake() {
        if (memory != null) {
            io.wake(this);
        }
    }

    /** Whether each member is looked at in each turn of the loop, so that nobody needs to ring. */
    boolean isLooking() {
        return isLooking;
    }

    /** Polls a member in the next turn although nobody rings. */
    void pollAgain(int slot) {
        again[slot / Long.SIZE] |= 1L << slot;
        wake();
    }

    @Override
    int poll() {
        MemorySegment now = memory;
        if (now == null) {
            return 0;
        }
        polling = true;
        int handled = 0;
        try {
            for (int word = 0; word * Long.SIZE < slots; word++) {
                handled += poll(now, word);
            }
            for (int slot = 0; isLooking && slot < slots; slot++) {
                Member member = members[slot];
                handled += member == null ? 0 : member.look();
            }
        } finally {
            polling = false;
            if (count == 0) {
                close();
            }
        }
        return handled;
    }

    private int poll(MemorySegment now, int word) {
        int handled = 0;
        long due = again[word] | Doorbell.take(now, word);
        // Whose turn does not come, because an earlier one throws, keeps it for the next poll.
        again[word] = due;
        while (due != 0) {
            long bit = Long.lowestOneBit(due);
            due ^= bit;
            // Before its turn, in which it may ask for another one.
            again[word] &= ~bit;
            Member member = members[word * Long.SIZE + Long.numberOfTrailingZeros(bit)];
            if (member != null) { // a peer may ring for one that has just ended
                handled += member.pollRung();
            }
        }
        return handled;
    }

    @Override
    boolean fallAsleep() {
        MemorySegment now = memory;
        if (now == null) {
            return true;
        }
        Doorbell.setSleeps(now, ++lastSleep);
        if (isAnyDue(now)) {
            awake();
            return false;
        }
        return true;
    }

    private boolean isAnyDue(MemorySegment now) {
        for (int word = 0; word * Long.SIZE < slots; word++) {
            if (again[word] != 0 || Doorbell.isRung(now, word)) {
                return true;
            }
        }
        for (int slot = 0; isLooking && slot < slots; slot++) {
            Member member = members[slot];
            if (member != null && !member.awaitRing()) {
                return true;
            }
        }
        return false;
    }

    @Override
    void awake() {
        MemorySegment now = memory;
        if (now != null) {
            Doorbell.setSleeps(now, isLooking ? Doorbell.LOOKS : 0);
        }
    }

    @Override
    public String toString() {
        return "doorbell of " + count + " connections with " + process;
    }
}
