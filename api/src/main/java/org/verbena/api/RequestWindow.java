package org.verbena.api;

import io.netty.channel.EventLoop;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.FutureListener;
import io.netty.util.concurrent.Promise;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.verbena.api.internal.loop.LoopNotifier;

/**
 * Keeps a bounded number of operations under way, such as requests or writes: when one ends, the next begins. Memory
 * then holds no more than the window, however many operations there are, and a slow peer slows the sender down.
 *
 * <pre>{@code
 * Iterator<byte[]> parts = ...
 * RequestWindow.run(client.channel().eventLoop(), 16,
 *                 () -> parts.hasNext() ? client.send(Unpooled.wrappedBuffer(parts.next())) : null)
 *         .addListener(...); // all have ended, or one has failed
 * }</pre>
 *
 * <p>Everything runs on the event loop, or, when the loop has ended, one after another on virtual threads; no thread
 * waits.
 */
public final class RequestWindow {
    private final EventLoop loop;

    /** Continues on virtual threads when operations end after the loop. */
    private final LoopNotifier notifier;

    private final Supplier<? extends @Nullable Future<?>> next;
    private final Promise<Long> outcome;
    private final FutureListener<Object> onEnd = this::ended0;

    private @Nullable Throwable failure;
    private boolean isOver;
    private int underWay;
    private long succeeded;

    private RequestWindow(EventLoop loop, Supplier<? extends @Nullable Future<?>> next) {
        this.loop = loop;
        this.next = next;
        notifier = new LoopNotifier(loop);
        outcome = notifier.newPromise();
    }

    /**
     * Runs operations until there are no more, or one has failed. Any thread.
     *
     * @param loop where operations begin, and where their futures' listeners run: the channel's
     * @param max how many are under way at once, 1 or more
     * @param next begins an operation and returns its future, or returns null if there are no more. It is not called
     *     again after null, after it has thrown, and after a failure
     * @return how many have succeeded; completes once none is under way. It fails with the first failure, or with what
     *     {@code next} has thrown, also only once none is under way. Cancelling it has no effect
     * @throws IllegalArgumentException {@code max} is below 1
     * @throws java.util.concurrent.RejectedExecutionException the loop has ended
     */
    public static Future<Long> run(EventLoop loop, int max, Supplier<? extends @Nullable Future<?>> next) {
        if (max < 1) {
            throw new IllegalArgumentException("a window of " + max + " operations: 1 or more");
        }
        RequestWindow window = new RequestWindow(loop, next);
        window.outcome.setUncancellable();
        if (loop.inEventLoop()) {
            window.fill0(max);
        } else {
            loop.execute(() -> window.fill0(max));
        }
        return window.outcome;
    }

    private void fill0(int max) {
        for (int i = 0; i < max && !isOver; i++) {
            begin0();
        }
        endIfDone0();
    }

    private void begin0() {
        @Nullable Future<?> begun;
        try {
            begun = next.get();
        } catch (Throwable broken) { // whatever it is, the caller is waiting for the outcome
            fail0(broken);
            return;
        }
        if (begun == null) {
            isOver = true;
            return;
        }
        underWay++;
        begun.addListener(onEnd);
    }

    private void ended0(Future<Object> ended) {
        if (loop.inEventLoop()) {
            settle0(ended);
        } else {
            notifier.execute(() -> settle0(ended));
        }
    }

    private void settle0(Future<Object> ended) {
        underWay--;
        if (ended.isSuccess()) {
            succeeded++;
            if (!isOver) {
                begin0();
            }
        } else {
            fail0(ended.cause());
        }
        endIfDone0();
    }

    private void fail0(@Nullable Throwable cause) {
        isOver = true;
        if (failure == null) {
            failure = cause;
        }
    }

    private void endIfDone0() {
        if (!isOver || underWay > 0) {
            return;
        }
        Throwable cause = failure;
        if (cause == null) {
            outcome.trySuccess(succeeded);
        } else {
            outcome.tryFailure(cause);
        }
    }
}
