package org.verbena.api.internal.client;

import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import org.jspecify.annotations.Nullable;
import org.verbena.api.internal.loop.Callbacks;
import org.verbena.api.internal.loop.Threads;
import org.verbena.transport.spi.LoopClock;

/** The steps of one client that goes by a clock of its own: on virtual threads of that clock. */
final class ControlSteps extends Control {
    private final Callbacks steps;

    /** The thread of the step that runs. */
    private volatile @Nullable Thread current;

    ControlSteps(LoopClock clock) {
        super(clock);
        steps = new Callbacks(clock);
    }

    @Override
    boolean isCurrent() {
        return Thread.currentThread().equals(current);
    }

    @Override
    void submit(Runnable step) {
        steps.execute(() -> {
            current = Thread.currentThread();
            attempt(step);
            current = null;
        });
    }

    @Override
    Future<?> schedule(Runnable step, long delayNanos) {
        Timer timer = new Timer(step);
        timer.alarm = Threads.schedule(clock(), () -> submit(timer), delayNanos);
        return timer;
    }

    /** A step that may be cancelled until it runs. */
    private static final class Timer extends FutureTask<Void> {
        /** Written before the caller has the timer. */
        private @Nullable Future<?> alarm;

        Timer(Runnable step) {
            super(() -> attempt(step), null);
        }

        @Override
        protected void done() {
            Future<?> due = alarm;
            if (due != null && isCancelled()) {
                due.cancel(false);
            }
        }
    }
}
