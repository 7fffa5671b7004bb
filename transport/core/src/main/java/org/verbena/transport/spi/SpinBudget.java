package org.verbena.transport.spi;

import java.lang.management.CompilationMXBean;
import java.lang.management.ManagementFactory;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.CompletionLoopOptions;

/**
 * How long an idle loop polls before it blocks. Blocking and being woken costs tens of microseconds, here and at the
 * peer that waits for the answer; polling costs a processor. So it pays to spin while work arrives often, and not to
 * spin at all when it does not. For one loop's thread.
 *
 * <p>Adaptive: a wait below 500 us that the budget did not cover doubles it, a wait above that halves it, down to 0. On
 * a machine with one processor it stays 0, because nothing else can run while the loop spins.
 *
 * <p>Where other threads want the processor, a loop that polls and yields is behind one that blocks: after a yield it
 * waits for its turn, while a blocked thread preempts when it is woken. So an adaptive loop that loses a quarter of its
 * polling time to others blocks for a while, longer each time, and then tries again. Time that it loses while the JVM
 * compiles does not count: compilers want the processor for seconds after a program has begun, and then no more.
 */
public final class SpinBudget {
    /** The longest wait that is worth spinning for. */
    static final long MAX_NANOS = 500_000;

    /** Smaller budgets are indistinguishable from a single poll. */
    static final long MIN_NANOS = 2_000;

    /**
     * One poll and one yield take a few microseconds; above this, something else had the processor in between. That may
     * be a short piece of work: on a crowded machine it is that of the threads that the loops' messages are for.
     */
    static final long SLOW_NANOS = 20_000;

    /** How much polling is judged together. */
    static final long WINDOW_NANOS = 20_000_000;

    /** The part of a window that may be lost: one in so many. */
    private static final int MAX_LOST_PART = 4;

    /** How long a loop blocks after its first window in which it lost too much processor time to others. */
    static final long MIN_PAUSE_NANOS = 20_000_000;

    /** The longest pause: then a window of polling costs about a fiftieth of the time. */
    static final long MAX_PAUSE_NANOS = 1_000_000_000;

    /** Less time of the compilers than this has not taken a quarter of a window from a loop. */
    static final long MIN_COMPILED_MILLIS = WINDOW_NANOS / MAX_LOST_PART / 1_000_000;

    private static final LoadedElsewhere COMPILERS = new LoadedElsewhere(Compilers::millis);

    private final boolean adaptive;
    private final LongSupplier compiledMillis;
    private long nanos;
    private long lastNanos;
    private long polledNanos;
    private long lostNanos;
    private boolean paused;
    private long pausedSince;
    private long pauseNanos = MIN_PAUSE_NANOS;
    private long compiledBeforeMillis;

    /**
     * Creates a budget for one loop.
     *
     * @param spinNanos as in {@link CompletionLoopOptions#spinNanos()}
     */
    public SpinBudget(long spinNanos) {
        this(spinNanos, Runtime.getRuntime().availableProcessors(), () -> COMPILERS.isDone() ? Compilers.millis() : 0);
    }

    SpinBudget(long spinNanos, int processors, LongSupplier compiledMillis) {
        this.compiledMillis = compiledMillis;
        boolean chosen = spinNanos == CompletionLoopOptions.ADAPTIVE_SPIN;
        adaptive = chosen && processors > 1;
        nanos = chosen ? 0 : spinNanos;
    }

    /**
     * Whether the budget is adaptive: then the loop reports each wait with {@link #waited}, and yields its processor
     * between polls.
     *
     * @return false if it is fixed
     */
    public boolean isAdaptive() {
        return adaptive;
    }

    /**
     * How long to spin now, at the beginning of a wait.
     *
     * @param nowNanos the time, from {@link System#nanoTime()}
     * @return in nanoseconds; 0 means not at all
     */
    public long nanos(long nowNanos) {
        lastNanos = nowNanos;
        if (paused) {
            if (nowNanos - pausedSince < pauseNanos) {
                return 0;
            }
            paused = false;
            pauseNanos = Math.min(pauseNanos * 2, MAX_PAUSE_NANOS);
        }
        return nanos;
    }

    /**
     * Reports that polls have found nothing, after the yield that follows them. No effect on a fixed budget.
     *
     * @param nowNanos the time, from {@link System#nanoTime()}
     * @return whether the loop may poll on; false if it should block
     */
    public boolean polled(long nowNanos) {
        if (!adaptive) {
            return true;
        }
        long tookNanos = nowNanos - lastNanos;
        lastNanos = nowNanos;
        polledNanos += tookNanos;
        if (tookNanos >= SLOW_NANOS) {
            lostNanos += tookNanos;
        }
        if (polledNanos < WINDOW_NANOS) {
            return true;
        }
        paused = lostNanos > polledNanos / MAX_LOST_PART && !hasCompiled();
        if (paused) {
            pausedSince = nowNanos;
        } else {
            pauseNanos = MIN_PAUSE_NANOS;
        }
        polledNanos = 0;
        lostNanos = 0;
        return !paused;
    }

    /** Whether the JVM has compiled since a window was last lost. */
    private boolean hasCompiled() {
        long before = compiledBeforeMillis;
        compiledBeforeMillis = compiledMillis.getAsLong();
        return compiledBeforeMillis - before >= MIN_COMPILED_MILLIS;
    }

    /**
     * Reports a wait that is over. No effect on a fixed budget.
     *
     * @param waitedNanos its length, spinning and blocked, in nanoseconds
     */
    public void waited(long waitedNanos) {
        if (!adaptive) {
            return;
        }
        if (waitedNanos >= MAX_NANOS) {
            nanos = nanos <= MIN_NANOS ? 0 : nanos / 2;
        } else if (waitedNanos > nanos) {
            nanos = Math.clamp(nanos * 2, MIN_NANOS, MAX_NANOS);
        }
    }

    /** The JVM's compilers; looked for when a loop first loses polling time, and unknown until they are found. */
    private static final class Compilers {
        private static final @Nullable CompilationMXBean ALL = ManagementFactory.getCompilationMXBean();

        /** How long they have compiled, all together; 0 where that is not known. */
        static long millis() {
            CompilationMXBean all = ALL;
            return all == null || !all.isCompilationTimeMonitoringSupported() ? 0 : all.getTotalCompilationTime();
        }
    }
}
