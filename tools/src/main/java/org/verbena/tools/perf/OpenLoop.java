package org.verbena.tools.perf;

import io.netty.channel.EventLoop;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.Promise;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;
import org.verbena.samples.command.Measurement;
import org.verbena.samples.command.Pipelined;

/**
 * Starts operations at a rate, whether or not earlier ones are done. Each is timed from when it was due, so that a
 * stall of the peer shows in all operations that it delays ("coordinated omission").
 */
final class OpenLoop {
    /** Beyond these, operations wait, and the wait is part of their time. */
    private static final int MAX_UNDER_WAY = 1 << 14;

    /** About how much longer a sleep takes than requested. */
    private static final long SLEEP_NANOS = TimeUnit.MICROSECONDS.toNanos(100);

    private final EventLoop loop;
    private final Supplier<Future<?>> operation;
    private final Measurement measurement = new Measurement();
    private final Promise<Measurement> outcome;
    private final Semaphore free = new Semaphore(MAX_UNDER_WAY);

    private OpenLoop(EventLoop loop, Supplier<Future<?>> operation) {
        this.loop = loop;
        this.operation = operation;
        outcome = loop.newPromise();
    }

    /**
     * Runs them, in turn on each of the connections. The calling thread paces the operations, and returns when the last
     * one is done or one has failed.
     *
     * @param loops the connections' loops
     * @param perSecond how many are due in a second, on all connections together
     * @param nanos the duration
     * @param operations start one, on the loop of the same index
     * @return the times of each connection, or its first failure
     */
    static List<Future<Measurement>> runAll(
            List<EventLoop> loops, double perSecond, long nanos, List<Supplier<Future<?>>> operations)
            throws InterruptedException {
        List<OpenLoop> runs = new ArrayList<>();
        for (int i = 0; i < loops.size(); i++) {
            runs.add(new OpenLoop(loops.get(i), operations.get(i)));
        }
        long count = Math.max(1, (long) (perSecond * nanos / TimeUnit.SECONDS.toNanos(1)));
        long beganNanos = System.nanoTime();
        for (long i = 0; i < count; i++) {
            OpenLoop run = runs.get((int) (i % runs.size()));
            if (run.outcome.isDone()) {
                break; // it has failed
            }
            long dueNanos = beganNanos + (long) (i * (double) TimeUnit.SECONDS.toNanos(1) / perSecond);
            await(dueNanos);
            run.free.acquire();
            run.loop.execute(() -> run.start0(dueNanos));
        }
        List<Future<Measurement>> outcomes = new ArrayList<>();
        for (OpenLoop run : runs) {
            run.end(beganNanos);
            outcomes.add(run.outcome);
        }
        return outcomes;
    }

    private static void await(long dueNanos) {
        for (long left = dueNanos - System.nanoTime(); left > 0; left = dueNanos - System.nanoTime()) {
            if (left > SLEEP_NANOS) {
                LockSupport.parkNanos(left - SLEEP_NANOS);
            } else {
                Thread.onSpinWait();
            }
        }
    }

    private void start0(long dueNanos) {
        Future<?> future;
        try {
            future = operation.get();
        } catch (RuntimeException failure) {
            outcome.tryFailure(failure);
            free.release();
            return;
        } catch (OutOfMemoryError failure) {
            outcome.tryFailure(Pipelined.noMemory(failure));
            free.release();
            return;
        }
        future.addListener(done -> {
            if (done.isSuccess()) {
                measurement.record(System.nanoTime() - dueNanos);
            } else {
                outcome.tryFailure(done.cause());
            }
            free.release();
        });
    }

    /** All are done when all places are free. */
    private void end(long beganNanos) throws InterruptedException {
        free.acquire(MAX_UNDER_WAY);
        loop.execute(() -> {
            measurement.took(System.nanoTime() - beganNanos);
            outcome.trySuccess(measurement);
        });
    }
}
