package org.verbena.samples.command;

import io.netty.channel.EventLoop;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.Promise;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.verbena.api.RequestWindow;

/** Runs an operation many times, a number of them at once, and measures how long each takes. */
public final class Pipelined {
    private final Measurement measurement = new Measurement();
    private final long count;
    private final long deadlineNanos;
    private final Supplier<Future<?>> operation;
    private long started;

    private Pipelined(long count, long deadlineNanos, Supplier<Future<?>> operation) {
        this.count = count;
        this.deadlineNanos = deadlineNanos;
        this.operation = operation;
    }

    /**
     * Runs it.
     *
     * @param loop the channel's
     * @param count how often, at the most
     * @param window how many at once
     * @param limitNanos after this time no more are started
     * @param operation starts one, on the loop
     * @return the times, or the first failure
     */
    public static Future<Measurement> run(
            EventLoop loop, long count, int window, long limitNanos, Supplier<Future<?>> operation) {
        long beganNanos = System.nanoTime();
        Pipelined run = new Pipelined(
                count, limitNanos == Long.MAX_VALUE ? Long.MAX_VALUE : beganNanos + limitNanos, operation);
        Promise<Measurement> outcome = loop.newPromise();
        RequestWindow.run(loop, window, run::start0).addListener((Future<Long> ended) -> {
            if (ended.isSuccess()) {
                run.measurement.took(System.nanoTime() - beganNanos);
                outcome.setSuccess(run.measurement);
            } else {
                outcome.setFailure(ended.cause());
            }
        });
        return outcome;
    }

    private @Nullable Future<?> start0() {
        long startNanos = System.nanoTime();
        // One runs in any case, so that there is something to report.
        boolean isLate = deadlineNanos != Long.MAX_VALUE && startNanos - deadlineNanos >= 0;
        if (started >= count || (started > 0 && isLate)) {
            return null;
        }
        started++;
        Future<?> begun;
        try {
            begun = operation.get();
        } catch (OutOfMemoryError failure) {
            throw noMemory(failure);
        }
        return begun.addListener(done -> {
            if (done.isSuccess()) {
                measurement.record(System.nanoTime() - startNanos);
            }
        });
    }

    /** For an operation that could not begin because there was no memory. */
    public static CommandFailure noMemory(OutOfMemoryError failure) {
        return new CommandFailure(
                "no memory for one more operation: have fewer under way (--window), or shorter ones; "
                        + failure.getMessage(),
                failure);
    }
}
