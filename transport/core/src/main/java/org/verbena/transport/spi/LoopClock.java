package org.verbena.transport.spi;

import io.netty.util.concurrent.Ticker;
import java.util.concurrent.Future;
import java.util.function.BooleanSupplier;
import java.util.function.LongSupplier;
import java.util.random.RandomGenerator;

/**
 * The clock of a provider's event loops. Everything that belongs to such a loop, or to a client or server on it, reads
 * this clock: deadlines of requests, keepalives, waits before a client connects again. It is the system's, unless the
 * provider is one for tests, whose clock stands still until the test moves it.
 *
 * <p>What measures this machine, such as statistics, rates of log lines and the polling of loops, reads {@link
 * System#nanoTime()} itself. Any thread may call all methods.
 *
 * <p>It is a class, not an interface, so that the JIT compiler calls {@link System#nanoTime()} directly as long as
 * there is no other clock in the process.
 */
public abstract class LoopClock implements LongSupplier {

    /** For providers. */
    protected LoopClock() {}

    /**
     * Returns the system's clock.
     *
     * @return always the same
     */
    public static LoopClock system() {
        return SystemClock.INSTANCE;
    }

    /**
     * Reads the clock.
     *
     * @return nanoseconds since some moment, as {@link System#nanoTime()}
     */
    public abstract long nanoTime();

    @Override
    public final long getAsLong() {
        return nanoTime();
    }

    /**
     * Returns the same clock, as Netty's event loops read it.
     *
     * @return always the same
     */
    public abstract Ticker ticker();

    /**
     * Whether it goes on by itself.
     *
     * @return false for a clock that a test moves
     */
    public abstract boolean isSystem();

    /**
     * Runs a task later, on some thread that the task must not block.
     *
     * @param task runs once
     * @param delayNanos from now on
     * @return cancels it
     */
    public abstract Future<?> schedule(Runnable task, long delayNanos);

    /**
     * Makes a virtual thread of the library. A clock that a test moves waits with its next move until the threads that
     * it has made have ended or wait for something.
     *
     * @param name of the thread
     * @param task of the thread
     * @return not started
     */
    public abstract Thread newVirtualThread(String name, Runnable task);

    /**
     * Draws numbers for waits that are random in part. A clock that a test moves draws the same ones in each run.
     *
     * @return for any thread
     */
    public abstract RandomGenerator random();

    /**
     * Called before a thread waits for the end of a client, a server or a group, which may take some of this clock's
     * time. A clock that a test moves goes on meanwhile, since nobody else may move it; that of the system does
     * nothing.
     *
     * @param over whether the wait is over
     */
    public abstract void passUntil(BooleanSupplier over);
}
