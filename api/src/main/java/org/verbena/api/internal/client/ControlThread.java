package org.verbena.api.internal.client;

import java.util.concurrent.Future;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.api.internal.loop.Threads;
import org.verbena.transport.spi.LoopClock;

/**
 * The thread for all clients of this process that go by the system's clock. While one is open the thread stays, since
 * the system may have no other when the next step comes.
 */
final class ControlThread extends Control {
    private static final Logger LOG = LoggerFactory.getLogger(ControlThread.class);

    /** Without clients the thread ends after this time, and keeps no class loader that is not in use. */
    private static final long IDLE_NANOS = TimeUnit.SECONDS.toNanos(1);

    static final ControlThread OF_PROCESS = new ControlThread(Worker::new, IDLE_NANOS);

    private final ScheduledThreadPoolExecutor executor;

    /** Written under the lock, read by any thread. */
    private volatile int clients;

    ControlThread(ThreadFactory threads, long idleNanos) {
        super(LoopClock.system());
        executor = new ScheduledThreadPoolExecutor(1, threads);
        executor.setRemoveOnCancelPolicy(true);
        executor.setKeepAliveTime(idleNanos, TimeUnit.NANOSECONDS);
        executor.allowCoreThreadTimeOut(true);
    }

    private static final class Worker extends Thread {
        /** Inherits nothing of the thread that happens to need it first. */
        Worker(Runnable work) {
            super(null, work, "verbena-clients", 0, false);
            setDaemon(true);
        }

        @Override
        public void run() {
            try {
                super.run();
            } finally {
                OF_PROCESS.ended();
            }
        }
    }

    @Override
    synchronized void enter() {
        executor.allowCoreThreadTimeOut(false);
        try {
            executor.prestartCoreThread();
            clients++;
        } finally {
            executor.allowCoreThreadTimeOut(clients == 0);
        }
    }

    @Override
    synchronized void leave() {
        clients--;
        executor.allowCoreThreadTimeOut(clients == 0);
    }

    /** No step can do this, but want of memory may: the next thread takes the steps that wait. */
    private void ended() {
        if (clients > 0) {
            LOG.error("the thread of the clients' connections has ended, and another is started");
            restart();
        }
    }

    private void restart() {
        try {
            executor.prestartCoreThread();
        } catch (Throwable noThread) {
            Threads.schedule(clock(), this::restart, IDLE_NANOS);
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
