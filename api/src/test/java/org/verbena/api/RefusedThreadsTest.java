package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.util.ReferenceCountUtil;
import io.netty.util.concurrent.Ticker;
import java.lang.StackWalker.StackFrame;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import java.util.function.Predicate;
import java.util.function.Supplier;
import java.util.random.RandomGenerator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.client.RequestOptions;
import org.verbena.api.client.Target;
import org.verbena.api.internal.memory.ChannelBuffers;
import org.verbena.api.internal.request.Requests;
import org.verbena.api.service.Codec;
import org.verbena.api.service.Method;
import org.verbena.transport.soft.SoftOptions;
import org.verbena.transport.soft.SoftProvider;
import org.verbena.transport.spi.LoopClock;
import org.verbena.transport.spi.Patience;

/**
 * One thread or timer of the library, once, cannot be had: each in turn. Whatever is called returns, whatever it
 * returned ends, and the next try works.
 */
@Timeout(300)
class RefusedThreadsTest {
    private static final byte[] ASKED = {1, 2, 3};

    private static final Method<byte[], byte[]> ECHO = Method.of("test", "echo", Codec.BYTES, Codec.BYTES);

    /** Far more than a run asks for. */
    private static final int MAX = 1000;

    /** The system's, except that it refuses one thread or timer, or to be read once while a request begins. */
    private static final class RefusingClock extends LoopClock {
        private final LoopClock inner = LoopClock.system();
        private final int refused;
        final AtomicInteger asked = new AtomicInteger();
        final AtomicBoolean failsRequest = new AtomicBoolean();
        final AtomicBoolean failsClose = new AtomicBoolean();

        RefusingClock(int refused) {
            this.refused = refused;
        }

        private void count() {
            if (asked.getAndIncrement() == refused) {
                throw new OutOfMemoryError("unable to create native thread");
            }
        }

        @Override
        public long nanoTime() {
            failIf(failsRequest, frame -> frame.getClassName().startsWith(Requests.class.getName()));
            return inner.nanoTime();
        }

        private static void failIf(AtomicBoolean once, Predicate<StackFrame> within) {
            if (once.get()
                    && StackWalker.getInstance().walk(frames -> frames.anyMatch(within))
                    && once.compareAndSet(true, false)) {
                throw new OutOfMemoryError("for a test");
            }
        }

        private static boolean isCloseOfChannel(StackFrame frame) {
            return frame.getMethodName().equals("close")
                    && frame.getClassName().startsWith(AbstractRdmaChannel.class.getName());
        }

        /** What a loop reads to schedule a task. */
        @Override
        public Ticker ticker() {
            Ticker system = inner.ticker();
            return new Ticker() {
                @Override
                public long initialNanoTime() {
                    return system.initialNanoTime();
                }

                @Override
                public long nanoTime() {
                    failIf(failsClose, RefusingClock::isCloseOfChannel);
                    return system.nanoTime();
                }

                @Override
                public void sleep(long delay, TimeUnit unit) throws InterruptedException {
                    system.sleep(delay, unit);
                }
            };
        }

        /** {@inheritDoc} So a client's steps run on threads of this clock, too. */
        @Override
        public boolean isSystem() {
            return false;
        }

        @Override
        public Future<?> schedule(Runnable task, long delayNanos) {
            count();
            return inner.schedule(task, delayNanos);
        }

        @Override
        public Thread newVirtualThread(String name, Runnable task) {
            count();
            return inner.newVirtualThread(name, task);
        }

        @Override
        public RandomGenerator random() {
            return inner.random();
        }

        @Override
        public void passUntil(BooleanSupplier over) {}
    }

    private static final class RefusingProvider extends DelegatingProvider {
        private final LoopClock clock;

        RefusingProvider(LoopClock clock) {
            super(new SoftProvider(SoftOptions.ofSystemProperties()));
            this.clock = clock;
        }

        @Override
        public LoopClock clock() {
            return clock;
        }
    }

    /** The second try works, if the first does not. */
    private static <T> T twice(Supplier<T> call) {
        try {
            return call.get();
        } catch (RuntimeException | Error once) {
            return call.get();
        }
    }

    /** Whether a future has a value; it has an outcome in any case. */
    private static boolean ends(CompletableFuture<?> future) {
        Patience.until("an outcome", future::isDone);
        return !future.isCompletedExceptionally();
    }

    private static CompletableFuture<?> of(io.netty.util.concurrent.Future<?> future) {
        CompletableFuture<Object> same = new CompletableFuture<>();
        future.addListener(done -> {
            ReferenceCountUtil.release(done.isSuccess() ? done.getNow() : null);
            same.complete(done);
        });
        return same;
    }

    /** Each way to begin something. */
    private static List<CompletableFuture<?>> all(RdmaClient client) {
        RequestOptions options =
                RequestOptions.DEFAULTS.withHedgeAfter(Duration.ofMillis(1)).withIdempotent(true);
        List<CompletableFuture<?>> all = new ArrayList<>();
        all.add(client.request(ASKED));
        all.add(client.request(ASKED, options));
        all.add(client.request(ByteBuffer.wrap(ASKED)));
        all.add(of(client.request(Unpooled.wrappedBuffer(ASKED), options)));
        all.add(client.requestReply(ASKED, options));
        all.add(client.call(ECHO, ASKED, options));
        all.add(client.request(ASKED).thenApplyAsync(reply -> reply));
        all.add(client.send(ASKED));
        all.add(client.stream(ASKED, options).trailers());
        all.add(client.whenReady());
        all.add(client.whenWritable());
        return all;
    }

    /** Returns how many threads and timers were asked for. */
    private static int run(int refused) {
        RefusingClock clock = new RefusingClock(refused);
        RdmaEventLoopGroup loops = new RdmaEventLoopGroup(new RefusingProvider(clock), 1);
        MessageHandler handler = MessageHandler.ofBytes((exchange, message) -> {
            if (exchange.isRequest()) {
                exchange.reply(message);
            }
        });
        RdmaServer server = twice(
                () -> RdmaServer.builder().group(loops).virtualThreads(true).bind("127.0.0.1", 0, handler));
        InetSocketAddress address = server.localAddress();
        RdmaClient client = twice(() -> builder(loops).connect("127.0.0.1", address.getPort()));
        CompletableFuture<RdmaClient> connecting =
                twice(() -> builder(loops).connectAsync("127.0.0.1", address.getPort()));
        RdmaClient starting = twice(() -> builder(loops)
                .target(Target.resolver(found -> {
                    found.accept(List.of(address));
                    return () -> {};
                }))
                .start());
        for (RdmaClient each : List.of(client, starting)) {
            all(each).forEach(RefusedThreadsTest::ends);
            assertThat(ends(each.request(ASKED))).as("the next request").isTrue();
        }
        if (ends(connecting)) {
            connecting.resultNow().close();
        }
        client.channel().close();
        Patience.until("another connection", () -> ends(client.request(ASKED)));
        client.close();
        assertThat(ends(starting.closeAsync())).as("closing").isTrue();
        ends(server.shutdown(Duration.ofSeconds(30)));
        server.close();
        loops.close();
        Patience.until("all registered buffers are home", () -> ChannelBuffers.usedBytes() == 0);
        return clock.asked.get();
    }

    private static RdmaClient.Builder builder(RdmaEventLoopGroup loops) {
        return RdmaClient.builder().group(loops).onState(state -> {});
    }

    /** It has been counted by then. */
    @Test
    void aRequestForWhichThereIsNoMemoryEndsAndMakesRoom() {
        RefusingClock clock = new RefusingClock(Integer.MAX_VALUE);
        MessageHandler echo = (exchange, message) -> exchange.reply(message.retain());
        try (RdmaEventLoopGroup loops = new RdmaEventLoopGroup(new RefusingProvider(clock), 1);
                RdmaServer server = RdmaServer.builder().group(loops).bind("127.0.0.1", 0, echo);
                RdmaClient client = builder(loops).maxPending(1, 1000).connect("127.0.0.1", server.port())) {
            for (boolean onLoop : new boolean[] {false, true}) {
                ByteBuf message = Unpooled.wrappedBuffer(new byte[10]);
                CompletableFuture<Object> cause = new CompletableFuture<>();
                Runnable step = () -> client.request(message).addListener(done -> cause.complete(done.cause()));
                clock.failsRequest.set(true);
                if (onLoop) {
                    client.channel().eventLoop().execute(step);
                } else {
                    step.run();
                }
                assertThat(Patience.await("its failure", cause)).isInstanceOf(OutOfMemoryError.class);
                assertThat(message.refCnt()).isZero();
                assertThat(Patience.await("the next", client.request(ASKED))).isEqualTo(ASKED);
            }
        }
    }

    /** Nothing else would end it while its peer reads nothing. */
    @Test
    void aChannelThatGetsNoTimerForItsCloseClosesAtOnce() throws Exception {
        RefusingClock clock = new RefusingClock(Integer.MAX_VALUE);
        ChannelInitializer<Channel> nothing = new ChannelInitializer<>() {
            @Override
            protected void initChannel(Channel channel) {}
        };
        try (RdmaEventLoopGroup loops = new RdmaEventLoopGroup(new RefusingProvider(clock), 1)) {
            Channel server = new ServerBootstrap()
                    .group(loops)
                    .channel(RdmaServerSocketChannel.class)
                    .childOption(ChannelOption.AUTO_READ, false)
                    .childHandler(nothing)
                    .bind("127.0.0.1", 0)
                    .sync()
                    .channel();
            Channel channel = new Bootstrap()
                    .group(loops)
                    .channel(RdmaSocketChannel.class)
                    .option(ChannelOption.SO_LINGER, 600)
                    .handler(nothing)
                    .connect(server.localAddress())
                    .sync()
                    .channel();
            while (channel.isWritable()) {
                channel.writeAndFlush(Unpooled.wrappedBuffer(new byte[100_000]));
            }
            clock.failsClose.set(true);
            channel.close();
            Patience.await("its end", channel.closeFuture());
            assertThat(clock.failsClose).as("a timer was refused").isFalse();
        }
    }

    @Test
    void nothingWaitsForEver() {
        int asked = run(Integer.MAX_VALUE);
        for (int refused = 0; refused < Math.min(asked, MAX); refused++) {
            asked = Math.max(asked, run(refused));
        }
        assertThat(asked).as("threads and timers of a run").isBetween(20, MAX);
    }
}
