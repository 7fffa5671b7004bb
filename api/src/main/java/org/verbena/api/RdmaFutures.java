package org.verbena.api;

import io.netty.util.concurrent.Future;
import java.util.concurrent.CompletableFuture;
import org.verbena.api.internal.loop.LoopFuture;

/** From Netty's futures to the JDK's. */
public final class RdmaFutures {
    private RdmaFutures() {}

    /**
     * Returns a {@link CompletableFuture} that completes, fails or is cancelled with a Netty future. Its dependent
     * stages run on the thread that completes the Netty future, which is an event loop, and must not block: use the
     * {@code Async} methods for stages that do. Without an executor these run each stage on a virtual thread. Waiting
     * for it, or for a stage of it, on an event loop of an {@link RdmaEventLoopGroup} throws {@link
     * io.netty.util.concurrent.BlockingOperationException}.
     *
     * <p>Completing the future in another way cancels the Netty future: {@code cancel}, {@code orTimeout}, {@code
     * complete}, all of them. If the Netty future completes with a value nevertheless, the value is released, or closed
     * if it is a channel. The reader of this future releases a value that it has completed with. That holds for this
     * future and not for its stages: a stage that is given up does not release the value, so limit the future before
     * adding stages.
     *
     * @param <T> the type of the result
     * @param future the Netty future, whose value nobody else releases
     * @return a new future
     */
    public static <T> CompletableFuture<T> toCompletable(Future<T> future) {
        return LoopFuture.of(future);
    }

    /**
     * As {@link CompletableFuture#allOf}, except that waiting for it on an event loop of an {@link RdmaEventLoopGroup}
     * throws {@link io.netty.util.concurrent.BlockingOperationException}, where the JDK's would wait forever.
     *
     * @param futures what to wait for
     * @return done when all of them are; fails if one of them has failed
     */
    public static CompletableFuture<Void> allOf(CompletableFuture<?>... futures) {
        return LoopFuture.of(CompletableFuture.allOf(futures));
    }
}
