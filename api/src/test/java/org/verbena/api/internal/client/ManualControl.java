package org.verbena.api.internal.client;

import java.util.PriorityQueue;
import java.util.concurrent.Delayed;
import java.util.concurrent.FutureTask;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import org.verbena.transport.spi.LoopClock;

/** Steps that run at once, or when a test lets their time pass. */
final class ManualControl extends Control {
    private final PriorityQueue<Task> tasks = new PriorityQueue<>();
    private long nowNanos;

    ManualControl() {
        super(LoopClock.system());
    }

    private final class Task extends FutureTask<Void> implements ScheduledFuture<Void> {
        private final long atNanos;

        Task(Runnable step, long atNanos) {
            super(step, null);
            this.atNanos = atNanos;
        }

        @Override
        public long getDelay(TimeUnit unit) {
            return unit.convert(atNanos - nowNanos, TimeUnit.NANOSECONDS);
        }

        @Override
        public int compareTo(Delayed other) {
            return Long.compare(getDelay(TimeUnit.NANOSECONDS), other.getDelay(TimeUnit.NANOSECONDS));
        }

        @Override
        public boolean cancel(boolean interrupts) {
            tasks.remove(this);
            return super.cancel(interrupts);
        }
    }

    @Override
    boolean isCurrent() {
        return true;
    }

    @Override
    void submit(Runnable step) {
        step.run();
    }

    @Override
    ScheduledFuture<?> schedule(Runnable step, long delayNanos) {
        Task task = new Task(step, nowNanos + delayNanos);
        tasks.add(task);
        return task;
    }

    @Override
    long nanoTime() {
        return nowNanos;
    }

    /** How many steps wait. */
    int pending() {
        return tasks.size();
    }

    /** Runs the next step, at its time. */
    void next() throws Exception {
        Task task = tasks.remove();
        nowNanos = task.atNanos;
        task.run();
        task.get();
    }

    /** Runs what is due within this time. */
    void advance(long nanos) throws Exception {
        long untilNanos = nowNanos + nanos;
        while (!tasks.isEmpty() && tasks.element().atNanos <= untilNanos) {
            next();
        }
        nowNanos = untilNanos;
    }
}
