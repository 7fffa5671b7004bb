package org.verbena.transport.protocol.memory;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.util.concurrent.DefaultEventExecutor;
import io.netty.util.concurrent.EventExecutor;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.ProviderException;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.buffer.BufferPoolOptions;
import org.verbena.transport.buffer.CountingMemoryDomain;
import org.verbena.transport.buffer.RegisteredBufferPool;
import org.verbena.transport.spi.ChildJvm;
import org.verbena.transport.spi.Patience;

/** Memory that comes back reaches whoever waits for it, whichever thread or loop it comes from. */
@Timeout(240)
class FreedMemoryTest {
    private static final int CHUNK_BYTES = 1 << 20;
    private static final int BLOCK_BYTES = 64 << 10;
    /** What may be promised of a pool of one chunk. */
    private static final int PROMISED_BYTES = CHUNK_BYTES / 4 * 3;

    private final SlowDomain domain = new SlowDomain();
    private final EventExecutor loop = new DefaultEventExecutor();
    private final EventExecutor otherLoop = new DefaultEventExecutor();
    private final RegisteredBufferPool sendPool = pool(CHUNK_BYTES);
    private RegisteredBufferPool pool = pool(CHUNK_BYTES);
    private MessageBuffers buffers = new MessageBuffers(sendPool, pool);
    private final HeldByUser account = new HeldByUser(() -> {});

    /** A device that, on request, registers memory slowly or refuses to. */
    private static final class SlowDomain implements MemoryDomain {
        private final CountingMemoryDomain device = new CountingMemoryDomain();
        private final CountDownLatch registering = new CountDownLatch(1);
        private final CountDownLatch mayGoOn = new CountDownLatch(1);
        private volatile boolean isSlow;
        private volatile boolean refuses;

        @Override
        public RegisteredMemory register(MemorySegment segment, Set<Access> access) {
            if (isSlow) {
                registering.countDown();
                try {
                    mayGoOn.await();
                } catch (InterruptedException e) {
                    throw new AssertionError(e);
                }
            }
            if (refuses) {
                throw new ProviderException("no more memory can be locked");
            }
            return device.register(segment, access);
        }

        @Override
        public long registeredBytes() {
            return device.registeredBytes();
        }
    }

    /** Counts how often it was told, and tries then, as a connection does on its loop. */
    private final class Waiter implements MessageBuffers.Waiter {
        private final AtomicInteger told = new AtomicInteger();

        @Override
        public void onMemoryFreed() {
            told.incrementAndGet();
        }

        @Nullable ByteBuf tryMessage(int bytes) {
            return buffers.tryAllocateMessage(bytes, this, account);
        }
    }

    private RegisteredBufferPool pool(long maxBytes) {
        // Nothing that is idle is freed meanwhile: a trim must not be what helps.
        return new RegisteredBufferPool(
                domain,
                BufferPoolOptions.DEFAULTS
                        .withChunkBytes(CHUNK_BYTES)
                        .withMaxRegisteredBytes(maxBytes)
                        .withIdleNanos(TimeUnit.HOURS.toNanos(1))
                        .withAccess(Set.of(MemoryDomain.Access.LOCAL_WRITE)));
    }

    private static <T> T on(EventExecutor loop, Callable<T> task) throws Exception {
        return loop.submit(task).get();
    }

    private List<ByteBuf> takeAll() {
        List<ByteBuf> all = new ArrayList<>();
        for (ByteBuf next = buffers.tryAllocateReceive(BLOCK_BYTES);
                next != null;
                next = buffers.tryAllocateReceive(BLOCK_BYTES)) {
            all.add(next);
        }
        assertThat(all).isNotEmpty();
        return all;
    }

    @AfterEach
    void end() throws Exception {
        domain.mayGoOn.countDown();
        pool.close();
        sendPool.close();
        loop.shutdownGracefully(0, 1, TimeUnit.SECONDS).sync();
        otherLoop.shutdownGracefully(0, 1, TimeUnit.SECONDS).sync();
        assertThat(domain.device.liveRegions()).isZero();
    }

    @Test
    void whatOtherThreadsReleasedBeforeAnyoneWaited() throws Exception {
        pool.attach(loop);
        pool.attach(otherLoop);
        List<ByteBuf> all = on(loop, this::takeAll);
        all.forEach(ByteBuf::release); // on this thread, so they wait for their loop, which has nothing to do
        Waiter waiter = new Waiter();
        ByteBuf message = on(otherLoop, () -> waiter.tryMessage(BLOCK_BYTES));
        assertThat(message).isNotNull();
        message.release();
    }

    @Test
    void whatItsLoopReleasedBeforeAnyoneWaited() throws Exception {
        pool.attach(loop);
        pool.attach(otherLoop);
        on(loop, () -> {
            takeAll().forEach(ByteBuf::release);
            return 0;
        });
        Waiter waiter = new Waiter();
        ByteBuf message = on(otherLoop, () -> waiter.tryMessage(PROMISED_BYTES));
        if (message == null) {
            Patience.until("the waiter is told", () -> waiter.told.get() > 0);
            message = on(otherLoop, () -> waiter.tryMessage(PROMISED_BYTES));
        }
        assertThat(message).isNotNull();
        message.release();
    }

    @Test
    void whatAnyThreadReleasesWhileSomeoneBeginsToWait() throws Exception {
        pool.attach(loop);
        pool.attach(otherLoop);
        for (int i = 0; i < 300; i++) {
            List<ByteBuf> all = on(loop, this::takeAll);
            Waiter waiter = new Waiter();
            Thread releaser = Thread.ofPlatform().start(() -> all.forEach(ByteBuf::release));
            ByteBuf message = on(otherLoop, () -> waiter.tryMessage(PROMISED_BYTES));
            releaser.join();
            while (message == null) {
                Patience.until("the waiter is told", () -> waiter.told.get() > 0);
                waiter.told.set(0);
                message = on(otherLoop, () -> waiter.tryMessage(PROMISED_BYTES));
            }
            message.release();
        }
    }

    @Test
    void whatIsLeftOfAChunkThatWasBeingRegistered() throws Exception {
        domain.isSlow = true;
        var taken = loop.submit(() -> buffers.tryAllocateReceive(BLOCK_BYTES));
        domain.registering.await();
        Waiter waiter = new Waiter();
        buffers.awaitReceives(waiter);
        assertThat(buffers.tryAllocateReceive(BLOCK_BYTES))
                .as("all of the budget is on its way")
                .isNull();
        domain.mayGoOn.countDown();
        ByteBuf first = taken.get();
        assertThat(first).isNotNull();
        assertThat(waiter.told).hasPositiveValue();
        ByteBuf second = buffers.tryAllocateReceive(BLOCK_BYTES);
        assertThat(second).isNotNull();
        buffers.forgetReceives(waiter);
        second.release();
        first.release();
    }

    @Test
    void theBudgetOfAChunkThatCouldNotBeRegistered() throws Exception {
        domain.isSlow = true;
        domain.refuses = true;
        var taken = loop.submit(() -> buffers.tryAllocateReceive(BLOCK_BYTES));
        domain.registering.await();
        Waiter waiter = new Waiter();
        buffers.awaitReceives(waiter);
        assertThat(buffers.tryAllocateReceive(BLOCK_BYTES)).isNull();
        domain.mayGoOn.countDown();
        assertThat(taken.get()).isNull();
        assertThat(waiter.told)
                .as("to tell it of a refusal is to ask without end")
                .hasValue(0);
        assertThat(buffers.mustAskAgain(waiter)).isTrue();
        domain.refuses = false;
        ByteBuf receive = buffers.tryAllocateReceive(BLOCK_BYTES);
        assertThat(receive).isNotNull();
        buffers.forgetReceives(waiter);
        receive.release();
    }

    @Test
    void receivesOfALoopWhileAnotherThatWaitsLongerIsBusy() throws Exception {
        List<ByteBuf> all = takeAll();
        Waiter first = new Waiter();
        Waiter second = new Waiter();
        Waiter behindIt = new Waiter();
        CountDownLatch busy = new CountDownLatch(1);
        on(loop, () -> {
            buffers.awaitReceives(first);
            return 0;
        });
        loop.execute(() -> {
            try {
                busy.await();
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        });
        on(otherLoop, () -> {
            buffers.awaitReceives(second);
            buffers.awaitReceives(behindIt);
            return 0;
        });
        all.removeLast().release();
        assertThat(second.told).hasValue(1);
        assertThat(behindIt.told)
                .as("it has its turn when the one before it leaves")
                .hasValue(0);
        on(otherLoop, () -> {
            buffers.forgetReceives(second);
            return 0;
        });
        assertThat(behindIt.told).hasValue(1);
        busy.countDown();
        on(otherLoop, () -> {
            buffers.forgetReceives(behindIt);
            return 0;
        });
        on(loop, () -> {
            buffers.forgetReceives(first);
            return 0;
        });
        all.forEach(ByteBuf::release);
    }

    /** In a JVM with 8 MiB of direct memory, outside of which the pools are: its program ends with 0 if all is well. */
    @Test
    void aMessageThatTheJvmHasNoDirectMemoryForWaits() throws Exception {
        assertThat(ChildJvm.run(List.of("-XX:MaxDirectMemorySize=8m"), ShortOfDirectMemory.class))
                .contains("got it when the JVM had some");
    }

    /** Receives lie in every chunk of 2 MiB, so a message of 6 MiB has to be outside the pool. */
    static final class ShortOfDirectMemory {
        private static final int MESSAGE_BYTES = 6 << 20;

        private ShortOfDirectMemory() {}

        public static void main(String... arguments) {
            RegisteredBufferPool pool = new RegisteredBufferPool(
                    new CountingMemoryDomain(),
                    BufferPoolOptions.DEFAULTS
                            .withChunkBytes(2 << 20)
                            .withMaxRegisteredBytes(16 << 20)
                            .withAccess(Set.of(MemoryDomain.Access.LOCAL_WRITE)));
            MessageBuffers buffers = new MessageBuffers(pool, pool);
            List<ByteBuf> pieces = new ArrayList<>();
            for (ByteBuf piece = buffers.tryAllocateReceive(1 << 20);
                    piece != null;
                    piece = buffers.tryAllocateReceive(1 << 20)) {
                pieces.add(piece);
            }
            for (int i = 0; i < pieces.size(); i += 2) {
                pieces.get(i).release(); // half of the pool is free, 1 MiB at most in a piece
            }
            ByteBuf others = Unpooled.directBuffer(5 << 20);
            HeldByUser account = new HeldByUser(() -> {});
            MessageBuffers.Waiter waiter = () -> {};
            for (int i = 0; i < 5; i++) {
                check(buffers.tryAllocateMessage(MESSAGE_BYTES, waiter, account) == null, "it was refused");
                check(buffers.mustAskAgain(waiter), "it is worth trying again");
            }
            others.release();
            ByteBuf message = buffers.tryAllocateMessage(MESSAGE_BYTES, waiter, account);
            if (message == null) {
                throw new AssertionError("it did not come");
            }
            message.release();
            System.out.println("got it when the JVM had some");
        }

        private static void check(boolean is, String what) {
            if (!is) {
                throw new AssertionError("not so: " + what);
            }
        }
    }
}
