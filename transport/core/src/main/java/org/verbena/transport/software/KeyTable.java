package org.verbena.transport.software;

import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;

/**
 * Maps STags to regions: open addressing with linear probing. STags are random, so each is its own hash. Lookups take
 * no lock; a thread that adds or removes holds the owner's.
 *
 * <pre>{@code
 * slot   null: a search ends here | a region | REMOVED: a search goes on
 * }</pre>
 *
 * <p>A lookup beside a change finds the state before it or after it; regions that are not being changed are always
 * found.
 */
public final class KeyTable {
    /** A power of two, as all lengths of the table. */
    private static final int FIRST_SLOTS = 64;

    /** Marks a slot whose region was removed. */
    private enum Removed {
        REMOVED
    }

    /** Written under the lock, read by every loop. At most half of the slots are in use. */
    private volatile AtomicReferenceArray<@Nullable Object> slots = new AtomicReferenceArray<>(FIRST_SLOTS);

    /** Under the lock: regions in the table. */
    private int size;

    /** Under the lock: slots that are not null. */
    private int usedSlots;

    /**
     * Looks an STag up.
     *
     * @param stag of any origin
     * @return null if nothing is registered under it
     */
    public @Nullable SoftwareMemory find(int stag) {
        AtomicReferenceArray<@Nullable Object> now = slots;
        int mask = now.length() - 1;
        int slot = stag & mask;
        while (true) {
            Object there = now.get(slot);
            if (there == null) {
                return null;
            }
            if (there instanceof SoftwareMemory memory && memory.remoteKey() == stag) {
                return memory;
            }
            slot = slot + 1 & mask;
        }
    }

    public int size() {
        return size;
    }

    /**
     * Adds a region.
     *
     * @param memory whose STag is not in the table
     */
    public void add(SoftwareMemory memory) {
        if (2 * (usedSlots + 1) > slots.length()) {
            rebuild();
        }
        AtomicReferenceArray<@Nullable Object> now = slots;
        int mask = now.length() - 1;
        int slot = memory.remoteKey() & mask;
        while (now.get(slot) instanceof SoftwareMemory) {
            slot = slot + 1 & mask;
        }
        if (now.get(slot) == null) {
            usedSlots++;
        }
        now.set(slot, memory);
        size++;
    }

    /**
     * Removes a region.
     *
     * @param memory in the table
     */
    public void remove(SoftwareMemory memory) {
        AtomicReferenceArray<@Nullable Object> now = slots;
        int mask = now.length() - 1;
        int slot = memory.remoteKey() & mask;
        while (now.get(slot) != memory) {
            slot = slot + 1 & mask;
        }
        size--;
        now.set(slot, Removed.REMOVED);
        // No search has to pass what is in front of a free slot.
        if (now.get(slot + 1 & mask) == null) {
            while (now.get(slot) == Removed.REMOVED) {
                now.set(slot, null);
                usedSlots--;
                slot = slot - 1 & mask;
            }
        }
    }

    private void rebuild() {
        int length = FIRST_SLOTS;
        while (length < 4 * (size + 1)) {
            length *= 2;
        }
        AtomicReferenceArray<@Nullable Object> before = slots;
        AtomicReferenceArray<@Nullable Object> made = new AtomicReferenceArray<>(length);
        for (int i = 0; i < before.length(); i++) {
            if (before.get(i) instanceof SoftwareMemory memory) {
                int slot = memory.remoteKey() & length - 1;
                while (made.getPlain(slot) != null) {
                    slot = slot + 1 & length - 1;
                }
                made.setPlain(slot, memory);
            }
        }
        usedSlots = size;
        slots = made;
    }
}
