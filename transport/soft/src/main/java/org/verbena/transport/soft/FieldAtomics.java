package org.verbena.transport.soft;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;

/**
 * The masked atomics of iWARP on 8 aligned bytes in host order.
 *
 * <p>Source: RFC 7306, 5.1
 */
final class FieldAtomics {
    private static final VarHandle NATIVE_LONG = ValueLayout.JAVA_LONG.varHandle();

    private FieldAtomics() {}

    /**
     * Adds field by field: a bit of the mask ends a field, whose carry goes no further.
     *
     * <p>Source: RFC 7306, 5.1.1
     */
    static long addFields(long value, long add, long mask) {
        // Without the top bits of the fields no carry leaves a field; they are added without carry.
        return ((value & ~mask) + (add & ~mask)) ^ ((value ^ add) & mask);
    }

    /** Adds, field by field, and returns the old value. A mask of 0 means one field. */
    static long fetchAndAdd(MemorySegment segment, long at, long add, long mask) {
        if (mask == 0) {
            return (long) NATIVE_LONG.getAndAdd(segment, at, add);
        }
        while (true) {
            long old = (long) NATIVE_LONG.getVolatile(segment, at);
            if (NATIVE_LONG.compareAndSet(segment, at, old, addFields(old, add, mask))) {
                return old;
            }
        }
    }

    /** Swaps the bits of one mask if those of the other are as expected; returns the old value. */
    static long compareAndSwap(
            MemorySegment segment, long at, long compare, long compareMask, long swap, long swapMask) {
        while (true) {
            long old = (long) NATIVE_LONG.getVolatile(segment, at);
            if (((compare ^ old) & compareMask) != 0) {
                return old;
            }
            if (NATIVE_LONG.compareAndSet(segment, at, old, (old & ~swapMask) | (swap & swapMask))) {
                return old;
            }
        }
    }
}
