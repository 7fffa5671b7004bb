package org.verbena.api.internal.loop;

import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.spi.LoopClock;

/**
 * Starts the virtual threads of this library. The system may refuse one for a moment, or a thread that carries them:
 * then the task is kept and tried again, so that nothing which waits for it stops for good. Any thread.
 */
public final class Threads {
    private static final Logger LOG = LoggerFactory.getLogger(Threads.class);

    /** A limit of threads is reached for longer than this, as a rule, and a caller hardly notices it. */
    private static final long AGAIN_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

    /** Whether the last thread could not be started, which is logged once. */
    private static final AtomicBoolean LACKING = new AtomicBoolean();

    private Threads() {}

    /** Runs a task on a virtual thread, now or as soon as there can be one. Does not throw. */
    public static void start(LoopClock clock, String name, Runnable task) {
        try {
            clock.newVirtualThread(name, task).start();
        } catch (Throwable refused) {
            startLater(clock, name, task, refused);
            return;
        }
        if (LACKING.get()) {
            LACKING.set(false);
        }
    }

    /** As {@link #start}, of a thread that could not be started at first. */
    public static void startLater(LoopClock clock, String name, Runnable task, Throwable refused) {
        try {
            schedule(clock, () -> start(clock, name, task), AGAIN_NANOS);
        } catch (Throwable noLoop) {
            refused.addSuppressed(noLoop);
            task.run(); // on this thread, since there is no other that could look after it
        }
        if (LACKING.compareAndSet(false, true)) {
            LOG.warn("thread {} cannot be started now, and is tried again until it can", name, refused);
        }
    }

    /** Runs a task later: by the clock, or, if that has no thread, on a loop of this process. */
    public static Future<?> schedule(LoopClock clock, Runnable task, long delayNanos) {
        try {
            return clock.schedule(task, delayNanos);
        } catch (Throwable refused) {
            RdmaEventLoop loop = RdmaEventLoop.any();
            if (loop == null) {
                throw refused;
            }
            return loop.schedule(task, delayNanos, TimeUnit.NANOSECONDS);
        }
    }
}
