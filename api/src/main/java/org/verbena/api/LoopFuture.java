package org.verbena.api;

import io.netty.util.concurrent.EventExecutor;
import io.netty.util.concurrent.Future;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/**
 * A JDK future that completes with a Netty future, on its event loop. Waiting for it on that loop is refused, and its
 * {@code Async} methods without an executor run each stage on a virtual thread. The stages that depend on it are of the
 * same kind.
 */
final class LoopFuture<T> extends CompletableFuture<T> {
    private static final Executor STAGES =
            stage -> Thread.ofVirtual().name("verbena-stage").start(stage);

    /** The loop that completes it, or null if that is not known. */
    private final @Nullable EventExecutor loop;

    /** The Netty future, which is cancelled with this one. */
    private final @Nullable Future<?> source;

    private LoopFuture(@Nullable EventExecutor loop, @Nullable Future<?> source) {
        this.loop = loop;
        this.source = source;
    }

    static <T> LoopFuture<T> of(Future<T> source, @Nullable EventExecutor loop) {
        LoopFuture<T> completable = new LoopFuture<>(loop, source);
        if (!source.isDone()) {
            source.addListener((Future<T> done) -> completable.end(done));
        }
        if (source.isDone()) { // a loop that has ended calls no listener
            completable.end(source);
        }
        return completable;
    }

    private void end(Future<T> done) {
        if (done.isSuccess()) {
            complete(done.getNow());
        } else if (done.isCancelled()) {
            cancel(false);
        } else {
            completeExceptionally(done.cause());
        }
    }

    @Override
    public <U> CompletableFuture<U> newIncompleteFuture() {
        return new LoopFuture<>(loop, null);
    }

    @Override
    public Executor defaultExecutor() {
        return STAGES;
    }

    @Override
    public boolean cancel(boolean mayInterruptIfRunning) {
        boolean cancelled = super.cancel(mayInterruptIfRunning);
        if (cancelled && source != null) {
            source.cancel(false);
        }
        return cancelled;
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
        if (loop != null && !isDone()) {
            ShortForm.checkMayWait(loop);
        }
    }
}
