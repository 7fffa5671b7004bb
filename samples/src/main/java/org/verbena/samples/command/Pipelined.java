package org.verbena.samples.command;

import io.netty.channel.EventLoop;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.Promise;
import java.util.function.Supplier;

/**
 * Runs an operation many times, a number of them at once, on the event loop that completes them. Each completion starts
 * the next one.
 */
public final class Pipelined {
    private final EventLoop loop;

    private final long count;
    private final long deadlineNanos;
    private final Supplier<Future<?>> operation;
    private final Measurement measurement = new Measurement();
    private final Promise<Measurement> outcome;
    private long started;
    private long done;
    private long beganNanos;

    private Pipelined(EventLoop loop, long count, long deadlineNanos, Supplier<Future<?>> operation) {
        this.loop = loop;
        this.count = count;
        this.deadlineNanos = deadlineNanos;
        this.operation = operation;
        outcome = loop.newPromise();
    }

    /**
     * Runs it.
     *
     * @param loop the channel's
     * @param count how often, at the most
     * @param window how many at once
     * @param limitNanos after this long no more are started
     * @param operation starts one, on the loop
     * @return the times, or the first failure
     */
    public static Future<Measurement> run(
            EventLoop loop, long count, int window, long limitNanos, Supplier<Future<?>> operation) {
        long now = System.nanoTime();
        Pipelined run =
                new Pipelined(loop, count, limitNanos == Long.MAX_VALUE ? Long.MAX_VALUE : now + limitNanos, operation);
        loop.execute(() -> {
            run.beganNanos = System.nanoTime();
            for (int i = 0; i < window && run.started < count; i++) {
                run.start0();
            }
        });
        return run.outcome;
    }

    private void start0() {
        started++;
        long startNanos = System.nanoTime();
        Future<?> future;
        try {
            future = operation.get();
        } catch (RuntimeException failure) {
            outcome.tryFailure(failure);
            return;
        } catch (OutOfMemoryError failure) {
            outcome.tryFailure(noMemory(failure));
            return;
        }
        future.addListener(finished -> onDone0(startNanos, finished));
    }

    /** For an operation that could not begin for want of memory. */
    public static CommandFailure noMemory(OutOfMemoryError failure) {
        return new CommandFailure(
                "no memory for one more operation: have fewer under way (--window), or shorter ones; "
                        + failure.getMessage(),
                failure);
    }

    private void onDone0(long startNanos, Future<?> finished) {
        assert loop.inEventLoop();
        if (!finished.isSuccess()) {
            outcome.tryFailure(finished.cause());
            return;
        }
        long nowNanos = System.nanoTime();
        measurement.record(nowNanos - startNanos);
        done++;
        boolean more = started < count && (deadlineNanos == Long.MAX_VALUE || nowNanos - deadlineNanos < 0);
        if (more && !outcome.isDone()) {
            start0();
        } else if (done == started) {
            measurement.took(nowNanos - beganNanos);
            outcome.trySuccess(measurement);
        }
    }
}
