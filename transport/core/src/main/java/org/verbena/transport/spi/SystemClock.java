package org.verbena.transport.spi;

import io.netty.util.concurrent.Ticker;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.random.RandomGenerator;

/** The clock that goes on by itself. */
final class SystemClock extends LoopClock {
    static final SystemClock INSTANCE = new SystemClock();

    private SystemClock() {}

    @Override
    public long nanoTime() {
        return System.nanoTime();
    }

    @Override
    public Ticker ticker() {
        return Ticker.systemTicker();
    }

    @Override
    public boolean isSystem() {
        return true;
    }

    @Override
    public Future<?> schedule(Runnable task, long delayNanos) {
        CompletableFuture<Void> timer = new CompletableFuture<>();
        timer.thenRun(task);
        return timer.completeOnTimeout(null, delayNanos, TimeUnit.NANOSECONDS);
    }

    @Override
    public Thread newVirtualThread(String name, Runnable task) {
        return Thread.ofVirtual().name(name).unstarted(task);
    }

    @Override
    public RandomGenerator random() {
        return ThreadLocalRandom.current();
    }

    @Override
    public void passUntil(BooleanSupplier over) {}
}
