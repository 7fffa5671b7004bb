package org.verbena.api;

import io.netty.util.concurrent.Future;
import java.util.concurrent.CompletableFuture;

/** From Netty's futures to the JDK's. */
public final class Futures {
    private Futures() {}

    /**
     * Returns a {@link CompletableFuture} that completes, fails or is cancelled with a Netty future. Its dependent
     * stages run on the thread that completes the Netty future, which is an event loop, and must not block: use the
     * {@code Async} methods for stages that do. Without an executor these run each stage on a virtual thread.
     * Cancelling the future cancels the Netty future.
     *
     * @param <T> the type of the result
     * @param future the Netty future
     * @return a new future
     */
    public static <T> CompletableFuture<T> toCompletable(Future<T> future) {
        return LoopFuture.of(future, null);
    }
}
