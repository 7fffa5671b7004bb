package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.embedded.EmbeddedChannel;
import io.netty.util.concurrent.ImmediateEventExecutor;
import io.netty.util.concurrent.Promise;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.verbena.transport.spi.Patience;

class RdmaFuturesTest {
    private final Promise<String> promise = ImmediateEventExecutor.INSTANCE.newPromise();

    /** What the owner of a future may do to it. */
    enum Ending {
        CANCEL(future -> future.cancel(true)),
        COMPLETE(future -> future.complete(Unpooled.EMPTY_BUFFER)),
        COMPLETE_EXCEPTIONALLY(future -> future.completeExceptionally(new IllegalStateException("for a test"))),
        COMPLETE_ASYNC(future -> future.completeAsync(() -> Unpooled.EMPTY_BUFFER)),
        FAIL_ASYNC(future -> future.completeAsync(() -> {
            throw new IllegalStateException("for a test");
        })),
        OR_TIMEOUT(future -> future.orTimeout(1, TimeUnit.MICROSECONDS)),
        COMPLETE_ON_TIMEOUT(future -> future.completeOnTimeout(Unpooled.EMPTY_BUFFER, 1, TimeUnit.MICROSECONDS)),
        OBTRUDE_VALUE(future -> future.obtrudeValue(Unpooled.EMPTY_BUFFER)),
        OBTRUDE_EXCEPTION(future -> future.obtrudeException(new IllegalStateException("for a test")));

        private final Consumer<CompletableFuture<ByteBuf>> how;

        Ending(Consumer<CompletableFuture<ByteBuf>> how) {
            this.how = how;
        }
    }

    @Test
    void givesTheValue() {
        CompletableFuture<String> future = RdmaFutures.toCompletable(promise);
        assertThat(future).isNotDone();
        promise.setSuccess("value");
        assertThat(future).isCompletedWithValue("value");
    }

    @Test
    void givesTheFailureItself() {
        IllegalStateException failure = new IllegalStateException();
        promise.setFailure(failure);
        CompletableFuture<String> future = RdmaFutures.toCompletable(promise);
        assertThat(future).isCompletedExceptionally();
        assertThat(future.exceptionNow()).isSameAs(failure);
    }

    @Test
    void cancelsBothWays() {
        CompletableFuture<String> future = RdmaFutures.toCompletable(promise);
        future.cancel(true);
        assertThat(promise.isCancelled()).isTrue();

        Promise<String> other = ImmediateEventExecutor.INSTANCE.newPromise();
        CompletableFuture<String> otherFuture = RdmaFutures.toCompletable(other);
        other.cancel(false);
        assertThat(otherFuture).isCancelled();
    }

    @ParameterizedTest
    @EnumSource
    void whateverEndsItGivesTheOperationUp(Ending ending) {
        Promise<ByteBuf> source = ImmediateEventExecutor.INSTANCE.newPromise();
        CompletableFuture<ByteBuf> future = RdmaFutures.toCompletable(source);
        ending.how.accept(future);
        Patience.until("the operation is given up", source::isCancelled);
        Patience.until("it has its outcome", future::isDone);
    }

    @ParameterizedTest
    @EnumSource
    void aValueThatComesTooLateIsReleased(Ending ending) {
        Promise<ByteBuf> source = ImmediateEventExecutor.INSTANCE.newPromise();
        CompletableFuture<ByteBuf> future = RdmaFutures.toCompletable(source);
        assertThat(source.setUncancellable()).isTrue();
        ending.how.accept(future);
        Patience.until("it has its outcome", future::isDone);
        ByteBuf value = Unpooled.buffer(1);
        source.setSuccess(value);
        assertThat(value.refCnt()).isZero();
    }

    @Test
    void aChannelThatComesTooLateIsClosed() {
        Promise<Channel> source = ImmediateEventExecutor.INSTANCE.newPromise();
        CompletableFuture<Channel> future = RdmaFutures.toCompletable(source);
        assertThat(source.setUncancellable()).isTrue();
        future.cancel(true);
        EmbeddedChannel channel = new EmbeddedChannel();
        source.setSuccess(channel);
        assertThat(channel.isOpen()).isFalse();
    }

    /** It is its reader's from then on. */
    @ParameterizedTest
    @EnumSource
    void aValueThatWasGivenStays(Ending ending) {
        Promise<ByteBuf> source = ImmediateEventExecutor.INSTANCE.newPromise();
        CompletableFuture<ByteBuf> future = RdmaFutures.toCompletable(source);
        ByteBuf value = Unpooled.buffer(1);
        source.setSuccess(value);
        ending.how.accept(future);
        assertThat(value.refCnt()).isOne();
        value.release();
    }
}
