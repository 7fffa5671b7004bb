package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.channel.IoEventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.spi.IncomingConnection;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.Listener;
import org.verbena.transport.spi.ListenerHandler;
import org.verbena.transport.spi.Patience;

/** An Error where work changes threads fails what it was for, and nothing after it. */
@Timeout(120)
class HandOverTest {
    private final VerbsProvider provider = new VerbsProvider();
    private MultiThreadIoEventLoopGroup group;
    private IoEventLoop loop;

    @BeforeEach
    void startLoop() throws Exception {
        StubDevice.install();
        group = new MultiThreadIoEventLoopGroup(1, provider.newIoHandlerFactory(CompletionLoopOptions.DEFAULTS));
        loop = group.next();
    }

    @AfterEach
    void endLoop() {
        Patience.await("the loop ended", group.shutdownGracefully(0, 5, TimeUnit.SECONDS));
        StubDevice.close(provider);
    }

    private static final class Throwing implements ListenerHandler {
        private final CompletableFuture<Listener> listening = new CompletableFuture<>();
        private final CompletableFuture<Throwable> closed = new CompletableFuture<>();
        private final boolean onListening;

        Throwing(boolean onListening) {
            this.onListening = onListening;
        }

        @Override
        public void onListening(Listener listener) {
            listening.complete(listener);
            if (onListening) {
                throw new ExceptionInInitializerError("on purpose");
            }
        }

        @Override
        public void onConnectRequest(Listener listener, IncomingConnection connection) {
            throw new StackOverflowError("on purpose");
        }

        @Override
        public void onClosed(Listener listener, @Nullable Throwable cause) {
            closed.complete(cause == null ? new Throwable("in good order") : cause);
        }
    }

    @Test
    void anErrorOfOnListeningEndsTheListener() {
        Throwing handler = new Throwing(true);
        provider.listen(loop, StubDevice.ROCE, ListenOptions.DEFAULTS, handler);
        assertThat(Patience.await("it is closed", handler.closed)).isInstanceOf(ExceptionInInitializerError.class);
    }

    @Test
    void anErrorOfOnConnectRequestTurnsThePeerAway() {
        Throwing handler = new Throwing(false);
        provider.listen(loop, StubDevice.ROCE, ListenOptions.DEFAULTS, handler);
        Listener listener = Patience.await("it listens", handler.listening);
        int before = StubDevice.call("stub_rejected");
        StubDevice.call("stub_request", StubDevice.ROCE.getPort());
        Patience.until("the peer is turned away", () -> StubDevice.call("stub_rejected") == before + 1);
        StubDevice.call("stub_request", StubDevice.ROCE.getPort());
        Patience.until("the next one as well", () -> StubDevice.call("stub_rejected") == before + 2);
        listener.close();
        Patience.await("it is closed", handler.closed);
    }

    /** A call that may block has no thread for a moment: it fails, and the next ones are made. */
    @Test
    void aConnectWithoutAThreadFailsAndTakesNobodysPlace() {
        AtomicInteger refusals = new AtomicInteger(BlockingConnects.MAX_PER_ADDRESS + 1);
        List<Runnable> tasks = new ArrayList<>();
        BlockingConnects connects = new BlockingConnects(tasks::add, task -> {
            if (refusals.getAndDecrement() > 0) {
                throw new OutOfMemoryError("unable to create native thread");
            }
            return new Thread(task, "made");
        });
        CountDownLatch made = new CountDownLatch(1);
        AtomicInteger refused = new AtomicInteger();
        for (int i = 0; i <= BlockingConnects.MAX_PER_ADDRESS + 1; i++) {
            connects.submit(new BlockingConnects.Call(new InetSocketAddress("10.0.0.9", 1)) {
                @Override
                boolean begin() {
                    return true;
                }

                @Override
                void connect() {
                    made.countDown();
                }

                @Override
                void refused(RuntimeException why) {
                    refused.incrementAndGet();
                }

                @Override
                void waiting(String reason) {}
            });
        }
        while (!tasks.isEmpty()) {
            tasks.removeFirst().run();
        }
        Patience.until("the last is made", () -> made.getCount() == 0);
        assertThat(refused).hasValue(BlockingConnects.MAX_PER_ADDRESS + 1);
        connects.close();
    }
}
