package org.verbena.samples.command;

import java.util.Locale;
import java.util.concurrent.TimeUnit;
import org.HdrHistogram.Histogram;

/** The times of one kind of operation, and their total time. One writer. */
public final class Measurement {
    /** An operation that takes longer has failed anyway. */
    private static final long LONGEST_NANOS = TimeUnit.MINUTES.toNanos(10);

    private static final int DIGITS = 3;
    private static final double NANOS_PER_MICRO = 1e3;
    private static final double NANOS_PER_SECOND = 1e9;
    private static final double BYTES_PER_MEGABYTE = 1e6;

    private final Histogram histogram = new Histogram(LONGEST_NANOS, DIGITS);
    private long tookNanos;

    /**
     * An operation that is measured.
     *
     * @param <E> a further exception that it throws
     */
    @FunctionalInterface
    public interface Step<E extends Exception> {
        void run() throws InterruptedException, E;
    }

    /** Runs an operation a number of times, one after the other. */
    public static <E extends Exception> Measurement of(int count, Step<E> step) throws InterruptedException, E {
        Measurement times = new Measurement();
        long beganNanos = System.nanoTime();
        for (int i = 0; i < count; i++) {
            long startNanos = System.nanoTime();
            step.run();
            times.record(System.nanoTime() - startNanos);
        }
        times.took(System.nanoTime() - beganNanos);
        return times;
    }

    /** Records one operation. */
    public void record(long nanos) {
        histogram.recordValue(Math.min(nanos, LONGEST_NANOS));
    }

    /** Sets the total time. */
    public void took(long nanos) {
        tookNanos = nanos;
    }

    /** Adds a measurement taken at the same time. */
    public void add(Measurement other) {
        histogram.add(other.histogram);
        tookNanos = Math.max(tookNanos, other.tookNanos);
    }

    /** All times, in nanoseconds. */
    public Histogram histogram() {
        return histogram.copy();
    }

    public long count() {
        return histogram.getTotalCount();
    }

    public double micros(double percentile) {
        return histogram.getValueAtPercentile(percentile) / NANOS_PER_MICRO;
    }

    public double perSecond() {
        return count() * NANOS_PER_SECOND / Math.max(1, tookNanos);
    }

    public double megabytesPerSecond(long bytesEach) {
        return perSecond() * bytesEach / BYTES_PER_MEGABYTE;
    }

    /**
     * The same as {@link #row} has, for programs.
     *
     * @param operation what was measured
     * @param count how often
     * @param bytesEach the bytes that one operation moves
     * @param p50Micros half of the operations took no longer
     * @param p90Micros nine in ten took no longer
     * @param p99Micros 99 in a hundred took no longer
     * @param perSecond how many were done in a second
     * @param megabytesPerSecond how much they moved, in 10^6 bytes
     */
    public record Figures(
            String operation,
            long count,
            long bytesEach,
            double p50Micros,
            double p90Micros,
            double p99Micros,
            double perSecond,
            double megabytesPerSecond) {}

    /** What was measured. */
    public Figures figures(String operation, long bytesEach) {
        return new Figures(
                operation,
                count(),
                bytesEach,
                micros(50),
                micros(90),
                micros(99),
                perSecond(),
                megabytesPerSecond(bytesEach));
    }

    /** The lines above a table of {@link #row}s. */
    public static String header() {
        return String.format(
                Locale.ROOT,
                "%-22s %10s %10s %10s %10s %12s %10s",
                "operation",
                "count",
                "p50 us",
                "p90 us",
                "p99 us",
                "per second",
                "MB/s");
    }

    /** One line of a table. */
    public String row(String operation, long bytesEach) {
        return String.format(
                Locale.ROOT,
                "%-22s %10d %10.1f %10.1f %10.1f %12.0f %10.1f",
                operation,
                count(),
                micros(50),
                micros(90),
                micros(99),
                perSecond(),
                megabytesPerSecond(bytesEach));
    }
}
