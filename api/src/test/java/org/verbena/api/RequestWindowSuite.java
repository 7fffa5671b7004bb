package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.EventLoop;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.GlobalEventExecutor;
import io.netty.util.concurrent.Promise;
import java.util.ArrayDeque;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.verbena.transport.spi.Patience;

/** Bounded windows of operations. */
public abstract class RequestWindowSuite extends ApiSuite {

    private static Future<Long> ended(Future<Long> run) {
        assertThat(run.awaitUninterruptibly(Patience.LIMIT.toMillis()))
                .as("ended")
                .isTrue();
        return run;
    }

    @Test
    void keepsNoMoreUnderWayThanItMay() {
        AtomicInteger underWay = new AtomicInteger();
        AtomicInteger highest = new AtomicInteger();
        AtomicInteger begun = new AtomicInteger();
        try (RdmaServer server = RdmaServer.builder()
                        .group(group)
                        .bind(host(), 0, (exchange, message) -> exchange.reply(message.retain()));
                RdmaClient client = RdmaClient.builder().group(group).connect(host(), server.port())) {
            Future<Long> run = RequestWindow.run(client.channel().eventLoop(), 7, () -> {
                if (begun.incrementAndGet() > 1000) {
                    return null;
                }
                highest.accumulateAndGet(underWay.incrementAndGet(), Math::max);
                return client.request(Unpooled.wrappedBuffer(new byte[100])).addListener((Future<ByteBuf> replied) -> {
                    underWay.decrementAndGet();
                    replied.getNow().release();
                });
            });
            assertThat(ended(run).getNow()).isEqualTo(1000);
            assertThat(highest).hasValue(7);
            assertThat(begun).as("not asked again after null").hasValue(1001);
        }
    }

    /** It ends with the first failure, but not before the others have ended. */
    @Test
    void beginsNoMoreAfterAFailure() throws Exception {
        EventLoop loop = group.next();
        Queue<Promise<Object>> begun = new ArrayDeque<>();
        Future<Long> run = RequestWindow.run(loop, 3, () -> {
            Promise<Object> one = loop.newPromise();
            begun.add(one);
            return one;
        });
        IllegalStateException first = new IllegalStateException("first");
        loop.submit(() -> {
                    assertThat(begun).hasSize(3);
                    begun.remove().setSuccess("done");
                })
                .sync();
        loop.submit(() -> {
                    assertThat(begun).hasSize(3);
                    begun.remove().setFailure(first);
                    begun.remove().setFailure(new IllegalStateException("second"));
                })
                .sync();
        loop.submit(() -> {
                    assertThat(begun).as("no more was begun").hasSize(1);
                    assertThat(run.isDone()).isFalse();
                    begun.remove().setSuccess("done");
                })
                .sync();
        assertThat(ended(run).cause()).isSameAs(first);
    }

    @Test
    void endsWithWhatTheProgramThrows() {
        IllegalStateException broken = new IllegalStateException("no more memory");
        AtomicInteger begun = new AtomicInteger();
        EventLoop loop = group.next();
        Future<Long> run = RequestWindow.run(loop, 4, () -> {
            if (begun.incrementAndGet() == 2) {
                throw broken;
            }
            return loop.newSucceededFuture(1);
        });
        assertThat(ended(run).cause()).isSameAs(broken);
        assertThat(begun).hasValue(2);
    }

    /** Operations that end at once do not pile up on the stack. */
    @Test
    void operationsThatEndAtOnceAreNoRecursion() {
        AtomicInteger left = new AtomicInteger(100_000);
        EventLoop loop = group.next();
        Future<Long> run =
                RequestWindow.run(loop, 2, () -> left.getAndDecrement() > 0 ? loop.newSucceededFuture(1) : null);
        assertThat(ended(run).getNow()).isEqualTo(100_000);
    }

    @Test
    void nothingToDoIsDone() {
        assertThat(ended(RequestWindow.run(group.next(), 1, () -> null)).getNow())
                .isZero();
        assertThatIllegalArgumentException().isThrownBy(() -> RequestWindow.run(group.next(), 0, () -> null));
    }

    @Test
    void endsWhenTheLoopHasEnded() {
        Promise<Object> late = GlobalEventExecutor.INSTANCE.newPromise();
        Future<Long> run;
        try (RdmaEventLoopGroup loops = new RdmaEventLoopGroup(provider(), 1)) {
            CompletableFuture<Boolean> begun = new CompletableFuture<>();
            run = RequestWindow.run(loops.next(), 1, () -> {
                boolean first = begun.complete(true);
                return first ? late : null;
            });
            Patience.await("the first", begun);
        }
        late.setSuccess("late");
        assertThat(ended(run).getNow()).isEqualTo(1);
    }
}
