package org.verbena.api.internal.loop;

import io.netty.channel.Channel;
import io.netty.util.ReferenceCountUtil;
import io.netty.util.concurrent.Future;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicReferenceFieldUpdater;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.spi.LoopClock;

/**
 * A JDK future of an operation of this library, such as one that completes with a Netty future. Waiting for it on an
 * event loop fails, and its {@code Async} methods without an executor run each stage on a virtual thread. So do the
 * stages that depend on it.
 *
 * <p>Its owner may complete it before the operation does: by cancelling, by a timeout, by any method that the JDK has.
 * The operation is then given up, and a value that arrives nevertheless is released.
 */
public class LoopFuture<T> extends CompletableFuture<T> {
    private static final Executor STAGES = stage -> Threads.start(LoopClock.system(), "verbena-stage", stage);

    @SuppressWarnings("rawtypes") // a class literal has no type arguments
    private static final AtomicReferenceFieldUpdater<LoopFuture, Future> SOURCE =
            AtomicReferenceFieldUpdater.newUpdater(LoopFuture.class, Future.class, "source");

    /** The Netty future that completes it, until it has; null for others. */
    @SuppressWarnings("rawtypes") // the updater's type
    private volatile @Nullable Future source;

    /** Creates one that nothing completes yet. */
    protected LoopFuture() {
        this(null);
    }

    private LoopFuture(@Nullable Future<?> source) {
        this.source = source;
    }

    public static <T> LoopFuture<T> of(Future<T> source) {
        LoopFuture<T> completable = new LoopFuture<>(source);
        if (!source.isDone()) {
            source.addListener((Future<T> done) -> completable.end(done));
        }
        if (source.isDone()) { // a loop that has ended calls no listener
            completable.end(source);
        }
        return completable;
    }

    /** Creates one with the outcome of another future of any kind. */
    public static <T> LoopFuture<T> of(CompletableFuture<T> other) {
        LoopFuture<T> same = new LoopFuture<>();
        other.whenComplete((value, failure) -> {
            if (failure == null) {
                same.give(value);
            } else {
                same.giveFailure(failure);
            }
        });
        return same;
    }

    private void end(Future<T> done) {
        if (SOURCE.getAndSet(this, null) == null) {
            return; // a second call
        }
        if (done.isSuccess()) {
            T value = done.getNow();
            if (!give(value)) {
                discard(value);
            }
        } else if (done.isCancelled()) {
            super.cancel(false);
        } else {
            giveFailure(done.cause());
        }
    }

    /** Completes it with the operation's result. Returns false if it was complete: the result has no owner then. */
    protected final boolean give(@Nullable T value) {
        return super.complete(value);
    }

    /** Fails it with the operation. */
    protected final void giveFailure(Throwable cause) {
        super.completeExceptionally(cause);
    }

    /** Called when its owner has completed it: gives the operation up. */
    protected void stop() {
        Future<?> pending = source;
        if (pending != null) {
            pending.cancel(false);
        }
    }

    private static void discard(@Nullable Object value) {
        if (value instanceof Channel channel) {
            channel.close();
        } else {
            ReferenceCountUtil.release(value);
        }
    }

    // ---- the owner's methods

    private boolean stopIf(boolean completed) {
        if (completed) {
            stop();
        }
        return completed;
    }

    @Override
    public boolean complete(T value) {
        return stopIf(super.complete(value));
    }

    @Override
    public boolean completeExceptionally(Throwable cause) {
        return stopIf(super.completeExceptionally(cause));
    }

    @Override
    public boolean cancel(boolean mayInterruptIfRunning) {
        return stopIf(super.cancel(mayInterruptIfRunning));
    }

    @Override
    public CompletableFuture<T> completeAsync(Supplier<? extends T> supplier, Executor executor) {
        executor.execute(() -> {
            if (isDone()) {
                return;
            }
            try {
                complete(supplier.get());
            } catch (Throwable thrown) {
                completeExceptionally(thrown);
            }
        });
        return this;
    }

    @Override
    public void obtrudeValue(T value) {
        boolean early = !isDone();
        super.obtrudeValue(value);
        stopIf(early);
    }

    @Override
    public void obtrudeException(Throwable cause) {
        boolean early = !isDone();
        super.obtrudeException(cause);
        stopIf(early);
    }

    @Override
    public <U> CompletableFuture<U> newIncompleteFuture() {
        return new LoopFuture<>();
    }

    @Override
    public Executor defaultExecutor() {
        return STAGES;
    }

    @Override
    public T get() throws InterruptedException, ExecutionException {
        checkMayWait();
        return super.get();
    }

    @Override
    public T get(long timeout, TimeUnit unit) throws InterruptedException, ExecutionException, TimeoutException {
        checkMayWait();
        return super.get(timeout, unit);
    }

    @Override
    public T join() {
        checkMayWait();
        return super.join();
    }

    private void checkMayWait() {
        if (!isDone()) {
            RdmaEventLoop.checkMayWait();
        }
    }
}
