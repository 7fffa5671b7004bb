package org.verbena.samples.command;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * The conditions of a measurement: how long it was warmed up, and how much processor time other processes took. Figures
 * from a cold JVM or a busy machine say little about Verbena. Not thread-safe.
 */
public final class Conditions {
    private static final Path PROCESSOR_TIMES = Path.of("/proc/stat");

    /** The unit in which Linux reports processor times. */
    private static final long NANOS_PER_TICK = TimeUnit.MILLISECONDS.toNanos(10);

    /**
     * In the line of /proc/stat: user, nice, system, then idle and waiting for disks, then interrupts of both kinds.
     */
    private static final int[] BUSY_COLUMNS = {1, 2, 3, 6, 7};

    /**
     * Processor time that was used until a time.
     *
     * @param nanos when
     * @param all by all processes
     * @param own by this one
     */
    record Usage(long nanos, Duration all, Duration own) {
        /** How many processors the other processes took since then, on average. */
        double othersSince(Usage before) {
            Duration others = all.minus(before.all).minus(own.minus(before.own));
            return Math.max(0, (double) others.toNanos() / Math.max(1, nanos - before.nanos));
        }
    }

    private final @Nullable Usage before = usage();
    private double warmUpSeconds;
    private int lines;
    private int unsteady;

    /** Begins a measurement. */
    public Conditions() {}

    /** One line of figures was warmed up. */
    public void add(WarmUp.Outcome outcome) {
        warmUpSeconds += outcome.nanos() / 1e9;
        lines++;
        unsteady += outcome.isSteady() ? 0 : 1;
    }

    /** The line for people below the figures. */
    public String line() {
        Double others = others();
        return String.format(
                Locale.ROOT,
                "Warm-up: %.1f s a line%s. %sLoad average: %.1f.",
                lines == 0 ? 0 : warmUpSeconds / lines,
                unsteady == 0 ? "" : ", in which " + unsteady + " of " + lines + " did not become steady",
                others == null
                        ? ""
                        : String.format(
                                Locale.ROOT,
                                "Other processes took %.1f of %d processors. ",
                                others,
                                Runtime.getRuntime().availableProcessors()),
                loadAverage());
    }

    /** The figures for programs. */
    public Members members() {
        return new Members(
                warmUpSeconds, unsteady, others(), Runtime.getRuntime().availableProcessors(), loadAverage());
    }

    /**
     * The same for programs.
     *
     * @param warmUpSeconds of all lines together
     * @param unsteadyLines lines whose warm-up ended because its time was over
     * @param otherProcessesProcessors how many processors other processes took on average; null where it is unknown
     * @param processors how many there are
     * @param loadAverage the system's, of the last minute; negative where it is unknown
     */
    public record Members(
            double warmUpSeconds,
            int unsteadyLines,
            @Nullable Double otherProcessesProcessors,
            int processors,
            double loadAverage) {}

    private static double loadAverage() {
        return ManagementFactory.getOperatingSystemMXBean().getSystemLoadAverage();
    }

    private @Nullable Double others() {
        Usage now = usage();
        return before == null || now == null ? null : now.othersSince(before);
    }

    private static @Nullable Usage usage() {
        Duration own = ProcessHandle.current().info().totalCpuDuration().orElse(null);
        try {
            return own == null ? null : new Usage(System.nanoTime(), busy(Files.readString(PROCESSOR_TIMES)), own);
        } catch (IOException unreadable) {
            return null; // not Linux
        }
    }

    /** The processor time of all processes, from the first line of {@code /proc/stat}. */
    static Duration busy(String processorTimes) {
        String[] columns =
                processorTimes.substring(0, processorTimes.indexOf('\n')).split(" +", -1);
        long ticks = 0;
        for (int column : BUSY_COLUMNS) {
            ticks += Long.parseLong(columns[column]);
        }
        return Duration.ofNanos(ticks * NANOS_PER_TICK);
    }
}
