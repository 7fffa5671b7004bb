package org.verbena.transport.ffm;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.VarHandle;

/** Binds threads to processors. Linux alone. */
@SuppressWarnings("restricted") // a downcall
public final class CpuAffinity {
    /** More than any kernel is built for. */
    public static final int HIGHEST_CPU = 8191;

    /** The machine has no such processor, or this process may not use it. */
    public static final int EINVAL = 22;

    private static final MemoryLayout CAPTURED = Linker.Option.captureStateLayout();
    private static final VarHandle ERRNO = CAPTURED.varHandle(MemoryLayout.PathElement.groupElement("errno"));

    /** {@code int sched_setaffinity(pid_t pid, size_t cpusetsize, const cpu_set_t *mask)}. */
    private static final MethodHandle SET = Linker.nativeLinker()
            .downcallHandle(
                    Linker.nativeLinker().defaultLookup().findOrThrow("sched_setaffinity"),
                    FunctionDescriptor.of(
                            ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG, ValueLayout.ADDRESS),
                    Linker.Option.captureCallState("errno"));

    private CpuAffinity() {}

    /**
     * Binds the calling thread, a platform thread, to one processor.
     *
     * @param cpu its number, 0 to {@link #HIGHEST_CPU}
     * @return 0, or the errno, such as {@link #EINVAL}: then the thread runs where it did. Source: sched_setaffinity(2)
     */
    public static int pin(int cpu) {
        try (Arena arena = Arena.ofConfined()) {
            int words = cpu / Long.SIZE + 1;
            MemorySegment mask = arena.allocate(ValueLayout.JAVA_LONG, words);
            mask.setAtIndex(ValueLayout.JAVA_LONG, cpu / Long.SIZE, 1L << cpu % Long.SIZE);
            MemorySegment captured = arena.allocate(CAPTURED);
            int failed;
            try {
                failed = (int) SET.invokeExact(captured, 0, mask.byteSize(), mask);
            } catch (Throwable impossible) {
                throw new AssertionError("a downcall does not throw", impossible);
            }
            return failed == 0 ? 0 : (int) ERRNO.get(captured, 0L);
        }
    }
}
