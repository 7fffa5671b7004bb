package org.verbena.disni.ffm;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;

/**
 * The first 64 processors that the calling thread, a platform thread, may run on. Source: sched_setaffinity(2)
 */
@SuppressWarnings("restricted") // binds functions of the C library
public final class ThreadAffinity {
    /** {@code sizeof(cpu_set_t)}: the kernel refuses to write a mask that is too short for its processors. */
    private static final long MASK_BYTES = 128;

    private static final FunctionDescriptor DESCRIPTOR = FunctionDescriptor.of(
            ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG, ValueLayout.ADDRESS);

    /** {@code int sched_setaffinity(pid_t pid, size_t cpusetsize, const cpu_set_t *mask);} */
    private static final MethodHandle SET = handle("sched_setaffinity");

    /** {@code int sched_getaffinity(pid_t pid, size_t cpusetsize, cpu_set_t *mask);} */
    private static final MethodHandle GET = handle("sched_getaffinity");

    private ThreadAffinity() {}

    private static MethodHandle handle(String function) {
        return Linker.nativeLinker()
                .downcallHandle(Linker.nativeLinker().defaultLookup().findOrThrow(function), DESCRIPTOR);
    }

    /**
     * Where the thread may run.
     *
     * @return a bit for each of the first 64 processors; all of them if the kernel does not tell
     */
    public static long get() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment mask = arena.allocate(MASK_BYTES, Long.BYTES);
            return call(GET, mask) < 0 ? -1 : mask.get(ValueLayout.JAVA_LONG, 0);
        }
    }

    /**
     * Binds the thread to processors.
     *
     * @param processors a bit for each of the first 64
     * @return whether the kernel did it: not if none of them is there and allowed
     */
    public static boolean set(long processors) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment mask = arena.allocate(MASK_BYTES, Long.BYTES);
            mask.set(ValueLayout.JAVA_LONG, 0, processors);
            return call(SET, mask) == 0;
        }
    }

    private static int call(MethodHandle function, MemorySegment mask) {
        try {
            return (int) function.invokeExact(0, mask.byteSize(), mask);
        } catch (Throwable impossible) {
            throw new AssertionError("a downcall does not throw", impossible);
        }
    }
}
