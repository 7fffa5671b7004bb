package org.verbena.transport.ffm;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;

/** Binds threads to processors. Linux only. */
@SuppressWarnings("restricted") // a downcall
public final class CpuAffinity {
    /** More than any kernel is built for. */
    public static final int HIGHEST_CPU = 8191;

    /** {@code int sched_setaffinity(pid_t pid, size_t cpusetsize, const cpu_set_t *mask)}. */
    private static final MethodHandle SET = Linker.nativeLinker()
            .downcallHandle(
                    Linker.nativeLinker().defaultLookup().findOrThrow("sched_setaffinity"),
                    FunctionDescriptor.of(
                            ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG, ValueLayout.ADDRESS),
                    Errno.CAPTURE);

    private CpuAffinity() {}

    /**
     * Binds the calling thread, a platform thread, to one processor.
     *
     * @param cpu its number, 0 to {@link #HIGHEST_CPU}
     * @return 0, or the errno, {@link Errno#EINVAL} for one that is not there or not allowed: then the thread runs
     *     where it did. Source: sched_setaffinity(2)
     */
    public static int pin(int cpu) {
        try (Arena arena = Arena.ofConfined()) {
            int words = cpu / Long.SIZE + 1;
            MemorySegment mask = arena.allocate(ValueLayout.JAVA_LONG, words);
            mask.setAtIndex(ValueLayout.JAVA_LONG, cpu / Long.SIZE, 1L << cpu % Long.SIZE);
            MemorySegment captured = Errno.newCapture(arena);
            int failed;
            try {
                failed = (int) SET.invokeExact(captured, 0, mask.byteSize(), mask);
            } catch (Throwable impossible) {
                throw new AssertionError("a downcall does not throw", impossible);
            }
            return failed == 0 ? 0 : Errno.get(captured);
        }
    }
}
