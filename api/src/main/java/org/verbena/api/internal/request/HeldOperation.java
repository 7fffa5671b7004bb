package org.verbena.api.internal.request;

import io.netty.buffer.ByteBuf;
import io.netty.channel.EventLoop;
import io.netty.util.ReferenceCountUtil;
import io.netty.util.concurrent.DefaultPromise;
import io.netty.util.concurrent.EventExecutor;
import io.netty.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.api.internal.loop.RdmaEventLoop;
import org.verbena.transport.RequestException;

/**
 * An operation that waits until its client has moved to another connection. A request's time runs while it waits.
 *
 * @param <T> the result
 */
final class HeldOperation<T> extends DefaultPromise<T> {
    private static final Logger LOG = LoggerFactory.getLogger(HeldOperation.class);

    private final Operation<T> operation;
    private final @Nullable ByteBuf message;
    private final long timeoutNanos;
    private final long beganNanos = System.nanoTime();
    private final @Nullable Future<?> timeout;

    /** Written once, when it is started; read by the thread that cancels. */
    private volatile @Nullable Future<T> started;

    /** Where listeners run. Written before the operation gets its outcome. */
    private volatile EventExecutor notifier;

    /**
     * Creates one.
     *
     * @param loop on which its future completes
     * @param message its ownership is taken
     * @param timeoutNanos of a request; 0 for a message, which has none
     */
    HeldOperation(EventLoop loop, Operation<T> operation, @Nullable ByteBuf message, long timeoutNanos) {
        super(loop);
        notifier = ((RdmaEventLoop) loop).notifier();
        this.operation = operation;
        this.message = message;
        this.timeoutNanos = timeoutNanos;
        timeout = timeoutNanos == 0 ? null : limit(loop);
    }

    private @Nullable Future<?> limit(EventLoop loop) {
        try {
            return loop.schedule(this::timeOut, timeoutNanos, TimeUnit.NANOSECONDS);
        } catch (RejectedExecutionException ended) {
            LOG.trace("the event loop has ended, and the client's move fails the operation", ended);
            return null;
        }
    }

    private void timeOut() {
        if (started == null) {
            tryFailure(new RequestException.TimedOut(
                    "request: not sent within " + TimeUnit.NANOSECONDS.toMillis(timeoutNanos)
                            + " ms, since the client moved to another connection"));
        }
    }

    /** Begins, unless it has completed. Either this or {@link #giveUp} is called, once. */
    void start(Messenger messenger) {
        stopTimeout();
        if (isDone()) {
            ReferenceCountUtil.release(message);
            return;
        }
        long leftNanos = timeoutNanos == 0 ? 0 : Math.max(1, timeoutNanos - (System.nanoTime() - beganNanos));
        notifier = messenger.notifier();
        Future<T> begun = operation.start(messenger, message, leftNanos);
        started = begun;
        begun.addListener((Future<T> done) -> end(done));
        if (isCancelled()) {
            begun.cancel(false);
        }
    }

    private void end(Future<T> done) {
        if (!done.isSuccess()) {
            tryFailure(done.cause());
        } else if (!trySuccess(done.getNow())) {
            ReferenceCountUtil.release(done.getNow());
        }
    }

    /** Fails it. */
    void giveUp(Throwable cause) {
        stopTimeout();
        ReferenceCountUtil.release(message);
        tryFailure(cause);
    }

    private void stopTimeout() {
        if (timeout != null) {
            timeout.cancel(false);
        }
    }

    @Override
    public boolean cancel(boolean mayInterruptIfRunning) {
        boolean cancelled = super.cancel(mayInterruptIfRunning);
        Future<T> begun = started;
        if (cancelled && begun != null) {
            begun.cancel(false);
        }
        return cancelled;
    }

    @Override
    protected EventExecutor executor() {
        return notifier;
    }

    @Override
    protected void checkDeadLock() {
        RdmaEventLoop.checkMayWait(executor());
    }
}
