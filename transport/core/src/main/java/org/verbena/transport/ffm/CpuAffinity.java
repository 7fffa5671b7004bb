package org.verbena.transport.ffm;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.BitSet;

/** Binds threads to processors. Linux only. */
@SuppressWarnings("restricted") // a downcall
public final class CpuAffinity {
    /** More than any kernel is built for. */
    public static final int HIGHEST_CPU = 8191;

    /** Room for {@link #HIGHEST_CPU}. */
    private static final long MASK_BYTES = (HIGHEST_CPU + 1) / Byte.SIZE;

    private static final FunctionDescriptor DESCRIPTOR = FunctionDescriptor.of(
            ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG, ValueLayout.ADDRESS);

    /** {@code int sched_setaffinity(pid_t pid, size_t cpusetsize, const cpu_set_t *mask)}. */
    private static final MethodHandle SET = handle("sched_setaffinity");

    /** {@code int sched_getaffinity(pid_t pid, size_t cpusetsize, cpu_set_t *mask)}. */
    private static final MethodHandle GET = handle("sched_getaffinity");

    private CpuAffinity() {}

    private static MethodHandle handle(String function) {
        return Linker.nativeLinker()
                .downcallHandle(Linker.nativeLinker().defaultLookup().findOrThrow(function), DESCRIPTOR, Errno.CAPTURE);
    }

    /**
     * Where the calling thread, a platform thread, may run.
     *
     * @return the processors; empty if the kernel does not tell. Source: sched_getaffinity(2)
     */
    public static BitSet get() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment mask = arena.allocate(MASK_BYTES, Long.BYTES);
            return call(GET, Errno.newCapture(arena), mask) < 0
                    ? new BitSet()
                    : BitSet.valueOf(mask.toArray(ValueLayout.JAVA_LONG));
        }
    }

    /**
     * Binds the calling thread, a platform thread, to processors.
     *
     * @param cpus their numbers, 0 to {@link #HIGHEST_CPU}
     * @return 0, or the errno, {@link Errno#EINVAL} if none of them is there and allowed: then the thread runs where it
     *     did. Source: sched_setaffinity(2)
     */
    public static int set(BitSet cpus) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment mask = arena.allocate(MASK_BYTES, Long.BYTES);
            long[] words = cpus.toLongArray();
            MemorySegment.copy(words, 0, mask, ValueLayout.JAVA_LONG, 0, words.length);
            MemorySegment captured = Errno.newCapture(arena);
            return call(SET, captured, mask) < 0 ? Errno.get(captured) : 0;
        }
    }

    private static int call(MethodHandle function, MemorySegment captured, MemorySegment mask) {
        try {
            return (int) function.invokeExact(captured, 0, mask.byteSize(), mask);
        } catch (Throwable impossible) {
            throw new AssertionError("a downcall does not throw", impossible);
        }
    }
}
