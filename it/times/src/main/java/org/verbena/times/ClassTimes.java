package org.verbena.times;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.UniqueId;
import org.junit.platform.engine.support.descriptor.ClassSource;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.TestPlan;

/**
 * Notes for each test class the time and the processor time that it took, for {@code .ci/times}.
 *
 * <p>The property {@value #FILE} names the file, which gets a line for each class: its name, milliseconds, and
 * milliseconds of processors, separated by tabs. What the JVM took before its first class has the name
 * {@value #START}. The processor time is this process's with the children that have ended, or, with the property
 * {@value #MACHINE}, the whole machine's: in a guest of the lab, where the kernel works for nobody else. The classes
 * run one after the other. Without the property it does nothing.
 */
public final class ClassTimes implements TestExecutionListener {
    private static final String FILE = "verbena.times";

    private static final String MACHINE = "verbena.times.machine";

    private static final String START = "-";

    /** Linux shows processor time in hundredths of a second, on each machine. */
    private static final int MILLIS_PER_TICK = 10;

    /** Surefire runs each class with a listener of its own where it has several JVMs. */
    private static final AtomicBoolean HAS_STARTED = new AtomicBoolean();

    private final @Nullable Path file = System.getProperty(FILE) == null ? null : Path.of(System.getProperty(FILE));

    private long startNanos;
    private long startMillis;

    /** For JUnit, which finds it by its name in {@code META-INF/services}. */
    public ClassTimes() {}

    @Override
    public void testPlanExecutionStarted(TestPlan plan) {
        if (file != null && !Boolean.getBoolean(MACHINE) && !HAS_STARTED.getAndSet(true)) {
            long processMillis = ProcessHandle.current()
                    .info()
                    .startInstant()
                    .map(start -> System.currentTimeMillis() - start.toEpochMilli())
                    .orElse(0L);
            write(file, START, processMillis, processorMillis());
        }
    }

    @Override
    public void executionStarted(TestIdentifier test) {
        if (file != null && isTopLevelClass(test)) {
            startNanos = System.nanoTime();
            startMillis = processorMillis();
        }
    }

    @Override
    public void executionFinished(TestIdentifier test, TestExecutionResult result) {
        if (file != null && isTopLevelClass(test)) {
            String name = ((ClassSource) test.getSource().orElseThrow()).getClassName();
            write(file, name, (System.nanoTime() - startNanos) / 1_000_000, processorMillis() - startMillis);
        }
    }

    private static boolean isTopLevelClass(TestIdentifier test) {
        return test.getSource().orElse(null) instanceof ClassSource
                && test.getParentIdObject()
                                .map(UniqueId::getSegments)
                                .orElseThrow()
                                .size()
                        == 1;
    }

    private static void write(Path file, String name, long millis, long processorMillis) {
        try {
            Files.writeString(
                    file,
                    name + '\t' + millis + '\t' + processorMillis + '\n',
                    StandardOpenOption.CREATE,
                    StandardOpenOption.APPEND);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static long processorMillis() {
        try {
            if (Boolean.getBoolean(MACHINE)) {
                // proc_stat(5): cpu, user, nice, system, idle, iowait, irq, softirq.
                String[] fields = Files.readString(Path.of("/proc/stat"))
                        .lines()
                        .findFirst()
                        .orElseThrow()
                        .split(" +");
                return MILLIS_PER_TICK * (sum(fields, 1, 4) + sum(fields, 6, 8));
            }
            // proc_pid_stat(5), after the name, which may have blanks in it: state, ..., utime, stime, cutime, cstime.
            String stat = Files.readString(Path.of("/proc/self/stat"));
            String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
            return MILLIS_PER_TICK * sum(fields, 11, 15);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static long sum(String[] numbers, int from, int to) {
        return Arrays.stream(numbers, from, to).mapToLong(Long::parseLong).sum();
    }
}
