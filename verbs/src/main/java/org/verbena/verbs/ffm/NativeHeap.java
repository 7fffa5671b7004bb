package org.verbena.verbs.ffm;

import java.lang.foreign.MemorySegment;

/**
 * Memory of C's heap, for objects that come and go with connections: closing a shared arena stops every thread of the
 * JVM for a moment, and a server may close a thousand connections at once. Accesses are not checked: the code that
 * frees the memory makes sure that nothing uses it any more.
 *
 * <p>Source: aligned_alloc(3), free(3)
 */
public final class NativeHeap {
    private static final long CACHE_LINE_BYTES = 64;

    private NativeHeap() {}

    /**
     * Allocates zeroed memory that begins with a cache line.
     *
     * @param bytes how much, 1 or more
     * @return the memory, for {@link #free}
     * @throws OutOfMemoryError the process can have no more
     */
    public static MemorySegment allocate(long bytes) {
        long rounded = (bytes + CACHE_LINE_BYTES - 1) / CACHE_LINE_BYTES * CACHE_LINE_BYTES;
        long address = Posix.alignedAlloc(CACHE_LINE_BYTES, rounded);
        if (address == 0) {
            throw new OutOfMemoryError("aligned_alloc(64, " + rounded + ") of the C library has no memory left");
        }
        return Pointers.view(address, bytes).fill((byte) 0);
    }

    /**
     * Frees memory.
     *
     * @param memory from {@link #allocate}; once
     */
    public static void free(MemorySegment memory) {
        Posix.free(memory.address());
    }
}
