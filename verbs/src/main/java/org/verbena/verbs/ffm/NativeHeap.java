package org.verbena.verbs.ffm;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/**
 * Memory of C's heap, for objects that come and go with connections: closing a shared arena stops every thread of the
 * JVM for a moment, and a server may close a thousand connections at once. Accesses are not checked: the code that
 * frees the memory makes sure that nothing uses it any more.
 *
 * <p>Source: aligned_alloc(3), free(3)
 */
@SuppressWarnings("restricted") // binds functions of the C library
public final class NativeHeap {
    private static final long CACHE_LINE_BYTES = 64;

    /** {@code void *aligned_alloc(size_t alignment, size_t size)} */
    private static final MethodHandle ALIGNED_ALLOC = Linker.nativeLinker()
            .downcallHandle(
                    Linker.nativeLinker().defaultLookup().findOrThrow("aligned_alloc"),
                    FunctionDescriptor.of(CStruct.PTR, CStruct.U64, CStruct.U64));

    /** {@code void free(void *ptr)} */
    private static final MethodHandle FREE = Linker.nativeLinker()
            .downcallHandle(
                    Linker.nativeLinker().defaultLookup().findOrThrow("free"), FunctionDescriptor.ofVoid(CStruct.PTR));

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
        long address;
        try {
            address = (long) ALIGNED_ALLOC.invokeExact(CACHE_LINE_BYTES, rounded);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
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
        try {
            FREE.invokeExact(memory.address());
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }
}
