package org.verbena.api.internal.client;

import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The thread on which the connections of all clients of this process are changed. Nothing of a program's runs there, so
 * nothing of a program's can hold it up. Methods that end in 0 run there.
 */
final class Control {
    private static final Logger LOG = LoggerFactory.getLogger(Control.class);

    /** The thread ends after this time without work, and keeps no class loader that is not in use. */
    private static final long IDLE_SECONDS = 1;

    private static final ScheduledThreadPoolExecutor EXECUTOR = new ScheduledThreadPoolExecutor(1, Worker::new);

    static {
        EXECUTOR.setRemoveOnCancelPolicy(true);
        EXECUTOR.setKeepAliveTime(IDLE_SECONDS, TimeUnit.SECONDS);
        EXECUTOR.allowCoreThreadTimeOut(true);
    }

    private Control() {}

    private static final class Worker extends Thread {
        /** Inherits nothing of the thread that happens to need it first. */
        Worker(Runnable work) {
            super(null, work, "verbena-clients", 0, false);
            setDaemon(true);
        }
    }

    /** Runs a step: now on this thread, else after those that were submitted before. Any thread. */
    static void run(Runnable step) {
        if (Thread.currentThread() instanceof Worker) {
            step.run();
        } else {
            submit(step);
        }
    }

    /** Runs a step after those that were submitted before. Any thread. */
    static void submit(Runnable step) {
        EXECUTOR.execute(() -> attempt(step));
    }

    static ScheduledFuture<?> schedule(Runnable step, long delayNanos) {
        return EXECUTOR.schedule(() -> attempt(step), delayNanos, TimeUnit.NANOSECONDS);
    }

    private static void attempt(Runnable step) {
        try {
            step.run();
        } catch (Throwable thrown) {
            LOG.error("a step of a client's connections has failed", thrown);
        }
    }
}
