package org.verbena.transport.spi;

import java.time.Duration;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** How long a test waits for something before it fails: no wait in a test is without this bound. */
public final class Patience {
    /**
     * Generous, because a guest without hardware virtualisation runs ten times slower;
     * {@code -Dverbena.test.patienceSeconds} changes it.
     */
    public static final Duration LIMIT = Duration.ofSeconds(Integer.getInteger("verbena.test.patienceSeconds", 60));

    private static final int TURNS = 200;

    private Patience() {}

    /**
     * Waits for a future.
     *
     * @param what for the message
     * @param future what to wait for
     * @param <T> of its value
     * @return its value
     */
    public static <T> T await(String what, Future<T> future) {
        return await(what, future, LIMIT);
    }

    /**
     * As {@link #await(String, Future)}, with a limit of its own.
     *
     * @param what for the message
     * @param future what to wait for
     * @param limit how long at most
     * @param <T> of its value
     * @return its value
     */
    public static <T> T await(String what, Future<T> future, Duration limit) {
        try {
            return future.get(limit.toMillis(), TimeUnit.MILLISECONDS);
        } catch (TimeoutException e) {
            throw new AssertionError("waited " + limit + " for: " + what, e);
        } catch (ExecutionException e) {
            if (e.getCause() instanceof RuntimeException cause) {
                throw cause;
            }
            throw new AssertionError(what + " failed", e.getCause());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new AssertionError("interrupted while waiting for: " + what, e);
        }
    }

    /**
     * Waits for an element.
     *
     * @param what for the message
     * @param queue where it will appear
     * @param <T> of the element
     * @return the element, removed
     */
    public static <T> T take(String what, BlockingQueue<T> queue) {
        try {
            T element = queue.poll(LIMIT.toMillis(), TimeUnit.MILLISECONDS);
            if (element == null) {
                throw new AssertionError("waited " + LIMIT + " for: " + what);
            }
            return element;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new AssertionError("interrupted while waiting for: " + what, e);
        }
    }

    /**
     * Lets time pass, where nothing happens that a test could wait for. {@code TextRulesTest} lists the few who do.
     *
     * @param millis how much
     */
    public static void sleep(long millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new AssertionError("interrupted while sleeping", e);
        }
    }

    /**
     * Gives what must not happen a chance to happen: so many turns of each loop, one after the other. Turns pass on a
     * slow machine as on a quick one, where a sleep of some milliseconds may pass without a single one.
     *
     * @param loops the loops of both ends
     */
    public static void turns(ExecutorService... loops) {
        turns(TURNS, loops);
    }

    /**
     * As {@link #turns(ExecutorService...)}, with a number of its own: one that is random reaches another step of what
     * the loops do each time.
     *
     * @param count how many of each loop
     * @param loops the loops
     */
    public static void turns(int count, ExecutorService... loops) {
        for (int i = 0; i < count; i++) {
            for (ExecutorService loop : loops) {
                await("a turn of the loop", loop.submit(() -> {}));
            }
        }
    }

    /**
     * Waits for a timer of a loop: by then the loop has run its timers that were due before, on a slow machine, too.
     *
     * @param loop the loop whose timers must do something by then, or nothing
     * @param delay of the timer
     */
    public static void timer(ScheduledExecutorService loop, Duration delay) {
        await("a timer", loop.schedule(() -> {}, delay.toNanos(), TimeUnit.NANOSECONDS));
    }

    /**
     * Waits until a condition holds.
     *
     * @param what for the message
     * @param condition looked at every few milliseconds
     */
    public static void until(String what, BooleanSupplier condition) {
        untilThere(what, () -> condition.getAsBoolean() ? true : null);
    }

    /**
     * Waits until there is something.
     *
     * @param what for the message
     * @param supplier asked every few milliseconds; null if there is nothing yet
     * @return what it gave
     */
    public static <T> T untilThere(String what, Supplier<? extends @Nullable T> supplier) {
        long deadlineNanos = System.nanoTime() + LIMIT.toNanos();
        while (true) {
            T there = supplier.get();
            if (there != null) {
                return there;
            }
            if (System.nanoTime() - deadlineNanos > 0) {
                throw new AssertionError("waited " + LIMIT + " until: " + what);
            }
            try {
                Thread.sleep(2);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new AssertionError("interrupted while waiting until: " + what, e);
            }
        }
    }
}
