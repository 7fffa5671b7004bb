package org.verbena.tools.perf;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import me.tongfei.progressbar.ProgressBar;
import me.tongfei.progressbar.ProgressBarBuilder;
import org.jspecify.annotations.Nullable;

/** Shows how much of the time of a test with one size has passed, warm-up included, until it is closed. */
final class PerfProgress implements AutoCloseable {
    private static final long STEP_NANOS = TimeUnit.MILLISECONDS.toNanos(200);
    private static final int MILLIS_PER_SECOND = 1000;

    private final @Nullable ProgressBarBuilder wanted;
    private final long millis;
    private @Nullable ProgressBar bar;

    /** Ends the clock's thread, which reads it. */
    private volatile boolean isClosed;

    /**
     * Creates one that shows nothing yet.
     *
     * @param option whether to show anything
     * @param name of the test and size
     * @param seconds how long it takes
     */
    PerfProgress(ProgressOption option, String name, double seconds) {
        millis = (long) (seconds * MILLIS_PER_SECOND);
        wanted = option.bar(name, millis);
    }

    /** The time begins. */
    void begin() {
        if (wanted != null) {
            ProgressBar shown = wanted.setUnit(" s", MILLIS_PER_SECOND)
                    .hideEta()
                    .clearDisplayOnFinish()
                    .build();
            bar = shown;
            Thread.ofPlatform().daemon().name("progress").start(() -> tick(shown));
        }
    }

    private void tick(ProgressBar shown) {
        long beganNanos = System.nanoTime();
        while (!isClosed) {
            LockSupport.parkNanos(STEP_NANOS);
            shown.stepTo(Math.min(millis, TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - beganNanos)));
        }
    }

    @Override
    public void close() {
        isClosed = true;
        if (bar != null) {
            bar.close();
        }
    }
}
