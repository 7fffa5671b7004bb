package org.verbena.transport.soft;

import java.lang.foreign.MemorySegment;
import java.security.SecureRandom;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.spi.MemoryDomain;
import org.verbena.transport.spi.RdmaException;
import org.verbena.transport.spi.RegisteredMemory;

/**
 * The protection domain of a provider: which STag stands for which memory.
 *
 * <p>An STag has 24 bits of index and 8 bits of random key. The index is the slot in a table, scrambled with numbers drawn
 * when the domain was made, so that neither part can be told from STags seen before (RFC 5042, 6.1.1 and 8).
 *
 * <p>Registration takes a lock; the lookup for a peer's request takes none.
 */
final class SoftDomain implements MemoryDomain {

    /** Indexes that 24 bits can tell. */
    static final int MAX_REGIONS = 1 << 24;

    private static final int INDEX_MASK = MAX_REGIONS - 1;
    /** Values of an STag's last byte, 0 not among them; the mask of that byte as well. */
    private static final int KEYS = 255;

    private static final int FIRST_SLOTS = 64;

    /** A thread that never runs: memory that it may access belongs to no single thread. */
    private static final Thread NOBODY = Thread.ofPlatform().unstarted(() -> {});

    private final SecureRandom random = new SecureRandom();
    private final int multiplier = random.nextInt(MAX_REGIONS) | 1;
    private final int inverse = inverse(multiplier);
    private final int shift = random.nextInt(MAX_REGIONS);
    private final AtomicLong registeredBytes = new AtomicLong();
    private final Object lock = new Object();

    /** Written under the lock; read by every loop. */
    private volatile AtomicReferenceArray<@Nullable SoftMemory> slots = new AtomicReferenceArray<>(FIRST_SLOTS);

    /** Under the lock: the last STags of slots that are free again. */
    private int[] free = new int[FIRST_SLOTS];

    /** Under the lock: how many of {@link #free} count. */
    private int freeCount;

    /** Under the lock: slots ever used. */
    private int usedSlots;

    /** The inverse of an odd number modulo 2^24, by Newton's iteration, which doubles the right bits each time. */
    private static int inverse(int odd) {
        int x = odd;
        for (int i = 0; i < 4; i++) {
            x *= 2 - odd * x;
        }
        return x & INDEX_MASK;
    }

    @Override
    public RegisteredMemory register(MemorySegment segment, Set<Access> access) {
        if (!segment.isNative()) {
            throw new IllegalArgumentException("heap memory cannot be registered; allocate it with Arena.ofShared()");
        }
        if (segment.byteSize() == 0) {
            throw new IllegalArgumentException("an empty segment cannot be registered");
        }
        if (!segment.isAccessibleBy(NOBODY)) {
            throw new IllegalArgumentException(
                    "memory of a confined arena cannot be registered; allocate it with Arena.ofShared()");
        }
        if (!segment.scope().isAlive()) {
            throw new IllegalArgumentException("the arena of the memory is closed");
        }
        Set<Access> rights = EnumSet.noneOf(Access.class);
        rights.addAll(access);
        if (rights.contains(Access.REMOTE_WRITE) || rights.contains(Access.REMOTE_ATOMIC)) {
            rights.add(Access.LOCAL_WRITE);
        }
        if (segment.isReadOnly() && rights.contains(Access.LOCAL_WRITE)) {
            throw new IllegalArgumentException("a read-only segment cannot be registered with " + rights);
        }
        SoftMemory memory;
        synchronized (lock) {
            int stag = freeCount > 0 ? renewed(free[--freeCount]) : firstOf(newSlot());
            memory = new SoftMemory(this, stag, segment, rights);
            slots.set(slotOf(stag), memory);
        }
        registeredBytes.addAndGet(segment.byteSize());
        return memory;
    }

    private int newSlot() {
        if (usedSlots == MAX_REGIONS) {
            throw new TableFullException();
        }
        AtomicReferenceArray<@Nullable SoftMemory> now = slots;
        if (usedSlots == now.length()) {
            AtomicReferenceArray<@Nullable SoftMemory> larger = new AtomicReferenceArray<>(now.length() * 2);
            for (int i = 0; i < now.length(); i++) {
                larger.set(i, now.get(i));
            }
            slots = larger;
        }
        return usedSlots++;
    }

    private int firstOf(int slot) {
        return (((slot * multiplier + shift) & INDEX_MASK) << 8) | (1 + random.nextInt(KEYS));
    }

    /** Another STag of the same slot: who still has the last one must not reach what comes after it. */
    private int renewed(int stag) {
        int last = stag & KEYS;
        int key = 1 + random.nextInt(KEYS - 1);
        return (stag & ~KEYS) | (key < last ? key : key + 1);
    }

    /** The slot an STag stands for, whether or not anything is there. */
    private int slotOf(int stag) {
        return (((stag >>> 8) - shift) * inverse) & INDEX_MASK;
    }

    /**
     * Called when nobody uses the memory any more.
     *
     * @param memory of this domain
     */
    void forget(SoftMemory memory) {
        synchronized (lock) {
            int stag = memory.remoteKey();
            slots.set(slotOf(stag), null);
            if (freeCount == free.length) {
                free = Arrays.copyOf(free, freeCount * 2);
            }
            free[freeCount++] = stag;
        }
        registeredBytes.addAndGet(-memory.lengthBytes());
    }

    /**
     * What an STag stands for.
     *
     * @param stag of any origin
     * @return null if nothing is registered under it
     */
    @Nullable SoftMemory find(int stag) {
        int slot = slotOf(stag);
        AtomicReferenceArray<@Nullable SoftMemory> now = slots;
        if (slot >= now.length()) {
            return null;
        }
        SoftMemory memory = now.get(slot);
        return memory != null && memory.remoteKey() == stag ? memory : null;
    }

    @Override
    public long registeredBytes() {
        return registeredBytes.get();
    }

    /** All 2^24 STags are in use. */
    private static final class TableFullException extends RdmaException {
        @java.io.Serial
        private static final long serialVersionUID = 1L;

        TableFullException() {
            super("all " + MAX_REGIONS
                    + " STags are in use: register larger regions, and close those no longer needed");
        }
    }
}
