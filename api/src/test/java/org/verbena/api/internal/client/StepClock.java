package org.verbena.api.internal.client;

import io.netty.util.concurrent.Ticker;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.PriorityQueue;
import java.util.Random;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.random.RandomGenerator;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.spi.LoopClock;

/**
 * A clock whose threads are steps of one thread, the caller's: they take their turns in an order that a seed draws, and
 * time passes when none is left. So a walk through all of it is the same in each run, and takes no time.
 */
final class StepClock extends LoopClock {
    private final Random random;
    private final List<Runnable> ready = new ArrayList<>();
    private final PriorityQueue<Timer> timers = new PriorityQueue<>(
            Comparator.comparingLong((Timer timer) -> timer.atNanos).thenComparingLong(t -> t.number));
    private final long maxConnectNanos;
    private long nowNanos = 1;
    private long numbers;
    private @Nullable Step current;

    /**
     * Starts it.
     *
     * @param maxConnectNanos how long an attempt to connect takes at most
     */
    StepClock(long seed, long maxConnectNanos) {
        random = new Random(seed);
        this.maxConnectNanos = maxConnectNanos;
    }

    private final class Timer extends FutureTask<Void> {
        private final long atNanos;
        private final long number = numbers++;

        Timer(Runnable step, long atNanos) {
            super(step, null);
            this.atNanos = atNanos;
        }

        @Override
        protected void setException(Throwable thrown) {
            throw new AssertionError("a step has failed", thrown);
        }

        @Override
        public boolean cancel(boolean interrupts) {
            timers.remove(this);
            return super.cancel(interrupts);
        }
    }

    /** A thread that never starts: its task is a step. */
    private final class Step extends Thread {
        private final Runnable task;
        private boolean interrupted;

        Step(String name, Runnable task) {
            super(null, null, name, 0, false);
            this.task = task;
        }

        @Override
        public void start() {
            if (getName().equals("verbena-connect")) {
                schedule(this::take, random.nextLong(maxConnectNanos));
            } else {
                ready.add(this::take);
            }
        }

        @Override
        public void interrupt() {
            interrupted = true;
        }

        private void take() {
            current = this;
            try {
                task.run();
            } finally {
                current = null;
            }
        }
    }

    /** Whether the thread whose step this is has been interrupted. */
    boolean isInterrupted() {
        Step now = current;
        return now != null && now.interrupted;
    }

    /** Runs a step among the others. */
    void submit(Runnable step) {
        ready.add(step);
    }

    /** Takes steps that are ready. Returns whether none is left. */
    boolean take(int count) {
        for (int i = 0; i < count && !ready.isEmpty(); i++) {
            int which = random.nextInt(ready.size());
            Runnable step = ready.set(which, ready.getLast());
            ready.removeLast();
            step.run();
        }
        return ready.isEmpty();
    }

    /** Lets time pass, and takes all steps that are ready by then. */
    void pass(long nanos) {
        long untilNanos = nowNanos + nanos;
        take(Integer.MAX_VALUE);
        while (!timers.isEmpty() && timers.element().atNanos <= untilNanos) {
            Timer timer = timers.remove();
            nowNanos = Math.max(nowNanos, timer.atNanos);
            timer.run();
            take(Integer.MAX_VALUE);
        }
        nowNanos = untilNanos;
    }

    /** How many steps wait for their time, or for their turn. */
    int pending() {
        return timers.size() + ready.size();
    }

    @Override
    public long nanoTime() {
        return nowNanos;
    }

    @Override
    public Ticker ticker() {
        throw new UnsupportedOperationException("there are no event loops");
    }

    @Override
    public boolean isSystem() {
        return false;
    }

    @Override
    public Future<?> schedule(Runnable task, long delayNanos) {
        Timer timer = new Timer(task, nowNanos + Math.max(0, Math.min(delayNanos, TimeUnit.DAYS.toNanos(1))));
        timers.add(timer);
        return timer;
    }

    @Override
    public Thread newVirtualThread(String name, Runnable task) {
        return new Step(name, task);
    }

    @Override
    public RandomGenerator random() {
        return random;
    }

    @Override
    public void passUntil(BooleanSupplier over) {
        while (!over.getAsBoolean() && pending() > 0) {
            pass(TimeUnit.MILLISECONDS.toNanos(1));
        }
    }
}
