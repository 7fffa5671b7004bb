package org.verbena.sockets;

import io.netty.util.concurrent.Future;
import java.io.InterruptedIOException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;

/**
 * How a thread waits in a socket, as the JDK documents it: an interrupt does not wake a platform thread, which keeps
 * its interrupt status; a virtual thread gets an {@link InterruptedIOException}, for which {@code Socket} and {@code
 * ServerSocket} close themselves.
 */
final class Blocking {
    private Blocking() {}

    /**
     * Waits for a condition.
     *
     * @param signal of the lock that the caller holds; signalled when it may hold
     * @param holds what to wait for
     * @param limitNanos for how long; 0 for no limit
     * @return false if the time is over
     */
    static boolean until(Condition signal, BooleanSupplier holds, long limitNanos) throws InterruptedIOException {
        boolean interrupted = false;
        long startNanos = System.nanoTime();
        try {
            while (!holds.getAsBoolean()) {
                long leftNanos = limitNanos - (System.nanoTime() - startNanos);
                if (limitNanos > 0 && leftNanos <= 0) {
                    return false;
                }
                try {
                    if (limitNanos > 0) {
                        signal.awaitNanos(leftNanos);
                    } else {
                        signal.await();
                    }
                } catch (InterruptedException e) {
                    interrupted = true;
                    leaveIfVirtual();
                }
            }
            return true;
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /**
     * Takes a lock.
     *
     * @param limitNanos for how long to wait for it; 0 for no limit
     * @return false if the time is over
     */
    static boolean lock(ReentrantLock lock, long limitNanos) {
        if (limitNanos == 0) {
            lock.lock();
            return true;
        }
        boolean interrupted = false;
        long startNanos = System.nanoTime();
        try {
            while (true) {
                try {
                    return lock.tryLock(limitNanos - (System.nanoTime() - startNanos), TimeUnit.NANOSECONDS);
                } catch (InterruptedException e) {
                    interrupted = true;
                }
            }
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /**
     * Waits for a future of an event loop, however it ends.
     *
     * @throws io.netty.util.concurrent.BlockingOperationException on that event loop
     */
    static void untilDone(Future<?> future) throws InterruptedIOException {
        boolean interrupted = false;
        try {
            while (!future.isDone()) {
                try {
                    future.await();
                } catch (InterruptedException e) {
                    interrupted = true;
                    leaveIfVirtual();
                }
            }
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    private static void leaveIfVirtual() throws InterruptedIOException {
        if (Thread.currentThread().isVirtual()) {
            throw new InterruptedIOException("interrupted while waiting in a socket");
        }
    }
}
