package org.verbena.api;

import io.netty.util.concurrent.Future;
import java.util.concurrent.CompletableFuture;

/** From Netty's futures to the JDK's. */
public final class Futures {
    private Futures() {}

    /**
     * A {@link CompletableFuture} that ends as a Netty future does. Its dependent stages run on the thread that completes the Netty
     * future, which is an event loop: use the {@code Async} variants for what blocks. Cancelling it cancels the Netty future.
     *
     * @param <T> what it gives
     * @param future the Netty future
     * @return a new future
     */
    public static <T> CompletableFuture<T> toCompletable(Future<T> future) {
        CompletableFuture<T> completable = new CompletableFuture<>();
        future.addListener((Future<T> done) -> {
            if (done.isSuccess()) {
                completable.complete(done.getNow());
            } else if (done.isCancelled()) {
                completable.cancel(false);
            } else {
                completable.completeExceptionally(done.cause());
            }
        });
        completable.whenComplete((value, failure) -> {
            if (completable.isCancelled()) {
                future.cancel(false);
            }
        });
        return completable;
    }
}
