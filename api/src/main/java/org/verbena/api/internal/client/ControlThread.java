package org.verbena.api.internal.client;

import java.util.concurrent.Future;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.verbena.transport.spi.LoopClock;

/** The thread for all clients of this process that go by the system's clock. */
final class ControlThread extends Control {
    /** The thread ends after this time without work, and keeps no class loader that is not in use. */
    private static final long IDLE_SECONDS = 1;

    static final ControlThread OF_PROCESS = new ControlThread();

    private final ScheduledThreadPoolExecutor executor = new ScheduledThreadPoolExecutor(1, Worker::new);

    private ControlThread() {
        super(LoopClock.system());
        executor.setRemoveOnCancelPolicy(true);
        executor.setKeepAliveTime(IDLE_SECONDS, TimeUnit.SECONDS);
        executor.allowCoreThreadTimeOut(true);
    }

    private static final class Worker extends Thread {
        /** Inherits nothing of the thread that happens to need it first. */
        Worker(Runnable work) {
            super(null, work, "verbena-clients", 0, false);
            setDaemon(true);
        }
    }

    @Override
    boolean isCurrent() {
        return Thread.currentThread() instanceof Worker;
    }

    @Override
    void submit(Runnable step) {
        executor.execute(() -> attempt(step));
    }

    @Override
    Future<?> schedule(Runnable step, long delayNanos) {
        return executor.schedule(() -> attempt(step), delayNanos, TimeUnit.NANOSECONDS);
    }
}
