package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.channel.IoEventLoop;
import io.netty.channel.IoHandler;
import io.netty.channel.IoHandlerFactory;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import java.lang.foreign.Arena;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.transport.spi.WorkRequest;

/** How often a busy loop goes back to Netty, and what waits meanwhile. Each send follows the outcome of the last. */
@Timeout(120)
class LoopTurnsTest {
    private final VerbsProvider provider = new VerbsProvider();

    /** Calls of the loop's handler. */
    private final AtomicInteger turns = new AtomicInteger();

    private MultiThreadIoEventLoopGroup group;
    private RecordingEndpointHandler handler;
    private RegisteredMemory region;

    // The loop's thread only.
    private int sent;
    private int wanted;

    @BeforeEach
    void connect() throws Exception {
        StubDevice.install();
        IoHandlerFactory real = provider.newIoHandlerFactory(CompletionLoopOptions.DEFAULTS);
        group = new MultiThreadIoEventLoopGroup(1, executor -> counting(real.newHandler(executor), turns));
        IoEventLoop loop = group.next();
        handler = new RecordingEndpointHandler("endpoint", loop);
        provider.connect(loop, StubDevice.ROCE, EndpointOptions.DEFAULTS, handler);
        handler.awaitConnected();
        region = handler.call(
                endpoint -> endpoint.memoryDomain().register(Arena.global().allocate(64), Set.of(Access.LOCAL_WRITE)));
    }

    static IoHandler counting(IoHandler real, AtomicInteger turns) {
        return (IoHandler) Proxy.newProxyInstance(
                IoHandler.class.getClassLoader(), new Class<?>[] {IoHandler.class}, (proxy, method, arguments) -> {
                    if (method.getName().equals("run")) {
                        turns.incrementAndGet();
                    }
                    try {
                        return method.invoke(real, arguments);
                    } catch (InvocationTargetException thrown) {
                        throw thrown.getCause();
                    }
                });
    }

    @AfterEach
    void end() {
        handler.awaitPrepared().disconnect();
        handler.awaitDisconnected();
        handler.assertNoViolations();
        region.close();
        Patience.await("the loop ended", group.shutdownGracefully(0, 5, TimeUnit.SECONDS));
        StubDevice.close(provider);
    }

    private void post() {
        WorkRequest work = new WorkRequest(1).asSend(sent, 0);
        work.buffers().add(region, 0, 8);
        assertThat(handler.post(handler.awaitPrepared(), work)).isTrue();
        handler.awaitPrepared().flush();
    }

    /** Posts the next one as long as more are wanted. */
    private void begin(int count, Runnable whenSent) {
        handler.whenSent((endpoint, completion) -> {
            sent++;
            whenSent.run();
            if (sent < wanted) {
                post();
            }
        });
        handler.run(endpoint -> {
            wanted = count;
            post();
        });
    }

    @Test
    void completionsThatFollowEachOtherTakeOneTurnForSeveral() {
        int count = 8000;
        CompletableFuture<Integer> taken = new CompletableFuture<>();
        int before = turns.get();
        begin(count, () -> {
            if (sent == count) {
                taken.complete(turns.get() - before);
            }
        });
        assertThat(taken.orTimeout(60, TimeUnit.SECONDS).join()).isLessThan(count / 4);
        handler.awaitSends(count);
    }

    @Test
    void aTaskWaitsForAFewBatches() {
        CompletableFuture<Integer> ranAt = new CompletableFuture<>();
        begin(2000, () -> {
            if (sent == 1001) {
                handler.loop().execute(() -> ranAt.complete(sent));
            }
        });
        handler.awaitSends(2000);
        assertThat(ranAt.join()).isBetween(1001, 1001 + 8);
    }

    @Test
    void aTimerRunsWhileCompletionsFollowEachOther() {
        CompletableFuture<Integer> ranAt = new CompletableFuture<>();
        begin(Integer.MAX_VALUE, () -> {});
        handler.loop()
                .schedule(
                        () -> {
                            wanted = sent;
                            ranAt.complete(sent);
                        },
                        1,
                        TimeUnit.MILLISECONDS);
        handler.awaitSends(ranAt.orTimeout(60, TimeUnit.SECONDS).join());
        Patience.turns(handler.loop());
        assertThat(sent).isEqualTo(ranAt.join() + 1);
        handler.awaitSend();
    }
}
