package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.util.concurrent.ImmediateEventExecutor;
import io.netty.util.concurrent.Promise;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

class FuturesTest {
    private final Promise<String> promise = ImmediateEventExecutor.INSTANCE.newPromise();

    @Test
    void givesTheValue() {
        CompletableFuture<String> future = Futures.toCompletable(promise);
        assertThat(future).isNotDone();
        promise.setSuccess("value");
        assertThat(future).isCompletedWithValue("value");
    }

    @Test
    void givesTheFailureItself() {
        IllegalStateException failure = new IllegalStateException();
        promise.setFailure(failure);
        CompletableFuture<String> future = Futures.toCompletable(promise);
        assertThat(future).isCompletedExceptionally();
        assertThat(future.exceptionNow()).isSameAs(failure);
    }

    @Test
    void cancelsBothWays() {
        CompletableFuture<String> future = Futures.toCompletable(promise);
        future.cancel(true);
        assertThat(promise.isCancelled()).isTrue();

        Promise<String> other = ImmediateEventExecutor.INSTANCE.newPromise();
        CompletableFuture<String> otherFuture = Futures.toCompletable(other);
        other.cancel(false);
        assertThat(otherFuture).isCancelled();
    }
}
