package org.verbena.samples.command;

import java.lang.management.CompilationMXBean;
import java.lang.management.ManagementFactory;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * Runs operations, uncounted, until they no longer get faster: until the medians of two windows of time in a row agree,
 * and the JIT compiler has done little in the second. A JVM runs new code several times as slowly as compiled code. Not
 * thread-safe.
 */
public final class WarmUp {
    /** Long enough for hundreds of the slowest round trips, and short compared with the measurement. */
    static final long WINDOW_NANOS = TimeUnit.MILLISECONDS.toNanos(200);

    /** On a busy machine two windows may never agree. */
    public static final long MAX_NANOS = TimeUnit.SECONDS.toNanos(3);

    /** Medians agree if they differ by no more than this part of the larger one. */
    private static final double AGREEMENT = 0.1;

    /** The compiler's threads took less than this part of a window. */
    private static final double QUIET = 0.25;

    /** Runs the operations that are to be measured. */
    @FunctionalInterface
    public interface Window {
        /**
         * Runs them for a time.
         *
         * @param nanos about how long
         * @return their times
         * @throws InterruptedException the thread was interrupted
         */
        Measurement run(long nanos) throws InterruptedException;
    }

    /**
     * The outcome of a warm-up.
     *
     * @param nanos how long it took
     * @param count operations that it ran
     * @param isSteady whether it ended because the operations no longer got faster, and not because the time was over
     */
    public record Outcome(long nanos, long count, boolean isSteady) {}

    private final LongSupplier nanoTime;
    private final LongSupplier compilerNanos;

    /** With the JVM's clock and compiler. */
    public WarmUp() {
        this(System::nanoTime, compilerTime());
    }

    /**
     * With another clock and compiler.
     *
     * @param nanoTime the time, in nanoseconds
     * @param compilerNanos the time that the compiler's threads have taken, in nanoseconds
     */
    WarmUp(LongSupplier nanoTime, LongSupplier compilerNanos) {
        this.nanoTime = nanoTime;
        this.compilerNanos = compilerNanos;
    }

    private static LongSupplier compilerTime() {
        CompilationMXBean compiler = ManagementFactory.getCompilationMXBean();
        return compiler != null && compiler.isCompilationTimeMonitoringSupported()
                ? () -> TimeUnit.MILLISECONDS.toNanos(compiler.getTotalCompilationTime())
                : () -> 0;
    }

    /**
     * Runs them.
     *
     * @param window runs them for a time
     * @param maxNanos after this long it ends anyway; 0 runs none
     * @return the outcome
     * @throws InterruptedException the thread was interrupted
     */
    public Outcome run(Window window, long maxNanos) throws InterruptedException {
        long beganNanos = nanoTime.getAsLong();
        long count = 0;
        double before = 0;
        long took = 0;
        while (took < maxNanos) {
            long compiledBefore = compilerNanos.getAsLong();
            long startNanos = nanoTime.getAsLong();
            Measurement measured = window.run(Math.min(WINDOW_NANOS, maxNanos - took));
            long now = nanoTime.getAsLong();
            count += measured.count();
            took = now - beganNanos;
            double median = measured.micros(50);
            boolean isQuiet = compilerNanos.getAsLong() - compiledBefore < QUIET * (now - startNanos);
            if (isQuiet && measured.count() > 0 && agree(before, median)) {
                return new Outcome(took, count, true);
            }
            before = median;
        }
        return new Outcome(took, count, false);
    }

    private static boolean agree(double one, double other) {
        return Math.abs(one - other) <= AGREEMENT * Math.max(one, other);
    }
}
