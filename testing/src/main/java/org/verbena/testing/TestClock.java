package org.verbena.testing;

import io.netty.util.concurrent.Ticker;
import java.util.Random;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.random.RandomGenerator;
import org.verbena.transport.spi.LoopClock;

/** What a {@link TestTime} is to the loops. */
final class TestClock extends LoopClock {
    private static final long SEED = 46;

    private final TestTime time;
    private final Random random = new Random(SEED);

    private final Ticker ticker = new Ticker() {
        @Override
        public long initialNanoTime() {
            return 0;
        }

        @Override
        public long nanoTime() {
            return time.nanos();
        }

        @Override
        public void sleep(long delay, TimeUnit unit) throws InterruptedException {
            time.sleep(unit.toNanos(delay));
        }
    };

    TestClock(TestTime time) {
        this.time = time;
    }

    @Override
    public long nanoTime() {
        return time.nanos();
    }

    @Override
    public Ticker ticker() {
        return ticker;
    }

    @Override
    public boolean isSystem() {
        return false;
    }

    @Override
    public Future<?> schedule(Runnable task, long delayNanos) {
        return time.schedule(task, delayNanos);
    }

    @Override
    public Thread newVirtualThread(String name, Runnable task) {
        return time.newThread(name, task);
    }

    @Override
    public RandomGenerator random() {
        return random;
    }

    @Override
    public void passUntil(BooleanSupplier over) {
        time.passUntil(over);
    }
}
