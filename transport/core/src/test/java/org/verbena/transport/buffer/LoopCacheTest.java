package org.verbena.transport.buffer;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import io.netty.buffer.ByteBuf;
import io.netty.util.concurrent.DefaultEventExecutor;
import io.netty.util.concurrent.EventExecutor;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.channels.Pipe;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.BufferPoolMetrics;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.ScatterGatherList;

/** Pools shared by event loops and other threads. */
@Timeout(240)
class LoopCacheTest {
    private static final int CHUNK_BYTES = 1 << 20;

    private final CountingMemoryDomain domain = new CountingMemoryDomain();
    private final EventExecutor loop = new DefaultEventExecutor();
    private final EventExecutor otherLoop = new DefaultEventExecutor();
    private RegisteredBufferPool pool = new RegisteredBufferPool(
            domain, BufferPoolOptions.DEFAULTS.withChunkBytes(CHUNK_BYTES).withMaxRegisteredBytes(64L * CHUNK_BYTES));

    @AfterEach
    void end() throws Exception {
        pool.close();
        loop.shutdownGracefully(0, 1, TimeUnit.SECONDS).sync();
        otherLoop.shutdownGracefully(0, 1, TimeUnit.SECONDS).sync();
        assertThat(domain.liveRegions()).isZero();
        assertThat(domain.registeredBytes()).isZero();
    }

    private static <T> T on(EventExecutor loop, Callable<T> task) throws Exception {
        return loop.submit(task).get();
    }

    private void attach(EventExecutor to) throws Exception {
        pool.attach(to);
        on(to, () -> 0);
    }

    @Test
    void keepsBlocksForItsLoop() throws Exception {
        attach(loop);
        pool.attach(loop);
        on(loop, () -> pool.allocate(1000).release());
        BufferPoolMetrics now = pool.metrics();
        assertThat(now.cachedBytes()).isPositive();
        assertThat(now.usedBytes()).isZero();
        assertThat(now.allocations()).isEqualTo(1);
        assertThat(now.releases()).isEqualTo(1);
        RegisteredByteBuf first = on(loop, () -> pool.allocate(1000));
        on(loop, first::release);
        assertThat(on(loop, () -> pool.allocate(1000))).isSameAs(first);
        on(loop, first::release);
    }

    @Test
    void takesBackBuffersThatOtherThreadsRelease() throws Exception {
        attach(loop);
        RegisteredByteBuf buffer = on(loop, () -> pool.allocate(1000));
        int blockBytes = buffer.blockBytes();
        buffer.release();
        assertThat(pool.metrics().usedBytes()).isEqualTo(blockBytes);
        on(loop, () -> {
            pool.trim();
            return 0;
        });
        assertThat(pool.metrics().usedBytes()).isZero();
        assertThat(pool.metrics().releases()).isEqualTo(1);
    }

    @Test
    void returnsItsBlocksWhenTheLoopEnds() throws Exception {
        attach(loop);
        RegisteredByteBuf buffer = on(loop, () -> {
            pool.allocate(100).release();
            return pool.allocate(1000);
        });
        loop.shutdownGracefully(0, 1, TimeUnit.SECONDS).sync();
        loop.terminationFuture().sync();
        assertThat(pool.metrics().cachedBytes()).isZero();
        buffer.release();
        assertThat(pool.metrics().usedBytes()).isZero();
        assertThat(pool.metrics().allocations()).isEqualTo(2);
        assertThat(pool.metrics().releases()).isEqualTo(2);
    }

    @Test
    void returnsItsBlocksWhenThePoolCloses() throws Exception {
        attach(loop);
        on(loop, () -> pool.allocate(1000).release());
        pool.close();
        on(loop, () -> 0);
        assertThat(domain.liveRegions()).isZero();
        assertThat(pool.metrics().chunks()).isZero();
    }

    @Test
    void trimsWhatItDoesNotNeed() throws Exception {
        attach(loop);
        on(loop, () -> {
            List<RegisteredByteBuf> burst = new ArrayList<>();
            for (int i = 0; i < 200; i++) {
                burst.add(pool.allocate(1000));
            }
            burst.forEach(ByteBuf::release);
            pool.trim();
            return 0;
        });
        assertThat(pool.metrics().cachedBytes()).isPositive();
        on(loop, () -> {
            pool.trim();
            return 0;
        });
        assertThat(pool.metrics().cachedBytes()).isZero();
    }

    @Test
    void lendsAnotherLoopWhatOneHoards() throws Exception {
        pool.close();
        pool = new RegisteredBufferPool(
                domain,
                BufferPoolOptions.DEFAULTS
                        .withChunkBytes(256 << 10)
                        .withMaxRegisteredBytes(256 << 10)
                        .withLoopCacheBytesPerClass(1 << 20));
        attach(loop);
        on(loop, () -> {
            List<RegisteredByteBuf> burst = new ArrayList<>();
            for (int i = 0; i < 64; i++) {
                burst.add(pool.allocate(4096));
            }
            burst.forEach(ByteBuf::release);
            return 0;
        });
        RegisteredByteBuf whole = pool.tryAllocate(256 << 10, 256 << 10);
        while (whole == null) {
            on(loop, () -> 0);
            whole = pool.tryAllocate(256 << 10, 256 << 10);
        }
        whole.release();
    }

    @Test
    void trimsByItself() throws Exception {
        pool.close();
        pool = new RegisteredBufferPool(
                domain, BufferPoolOptions.DEFAULTS.withIdleNanos(TimeUnit.MILLISECONDS.toNanos(20)));
        attach(loop);
        int chunks = on(loop, () -> {
            pool.allocate(1000).release();
            return domain.liveRegions(); // before the loop can trim
        });
        assertThat(chunks).isEqualTo(1);
        Patience.until("the chunk is given back", () -> domain.liveRegions() == 0);
    }

    @Test
    void survivesReleaseByOtherThreads() throws Exception {
        long seed = System.nanoTime();
        attach(loop);
        attach(otherLoop);
        LinkedBlockingQueue<RegisteredByteBuf> handedOver = new LinkedBlockingQueue<>(1_000);
        AtomicBoolean done = new AtomicBoolean();
        List<Throwable> failures = new ArrayList<>();
        List<Thread> releasers = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            releasers.add(Thread.ofPlatform().start(() -> {
                try {
                    RegisteredByteBuf buffer;
                    while ((buffer = handedOver.poll(5, TimeUnit.MILLISECONDS)) != null || !done.get()) {
                        if (buffer != null) {
                            verifyMark(buffer);
                            buffer.release();
                        }
                    }
                } catch (Throwable failure) {
                    synchronized (failures) {
                        failures.add(failure);
                    }
                }
            }));
        }
        List<io.netty.util.concurrent.Future<Integer>> producers = new ArrayList<>();
        for (EventExecutor producer : List.of(loop, otherLoop)) {
            producers.add(producer.submit(() -> {
                Random random = new Random(seed);
                List<RegisteredByteBuf> own = new ArrayList<>();
                for (int i = 0; i < 50_000; i++) {
                    RegisteredByteBuf buffer = pool.allocate(16 + random.nextInt(20_000));
                    long mark = random.nextLong();
                    buffer.writeLong(mark).setLong(buffer.capacity() - 8, mark);
                    if (random.nextBoolean()) {
                        handedOver.put(buffer);
                    } else {
                        own.add(buffer);
                    }
                    if (own.size() > 100) {
                        RegisteredByteBuf old = own.remove(random.nextInt(own.size()));
                        verifyMark(old);
                        old.release();
                    }
                }
                own.forEach(ByteBuf::release);
                return 0;
            }));
        }
        for (io.netty.util.concurrent.Future<Integer> producer : producers) {
            producer.get();
        }
        done.set(true);
        for (Thread releaser : releasers) {
            releaser.join();
        }
        assertThat(failures).as("seed %d", seed).isEmpty();
        for (EventExecutor each : List.of(loop, otherLoop)) {
            on(each, () -> {
                pool.trim();
                return 0;
            });
        }
        assertThat(pool.metrics().usedBytes()).as("seed %d", seed).isZero();
        assertThat(pool.metrics().allocations()).isEqualTo(100_000);
        assertThat(pool.metrics().releases()).isEqualTo(100_000);
    }

    private static void verifyMark(RegisteredByteBuf buffer) {
        if (buffer.getLong(0) != buffer.getLong(buffer.capacity() - 8)) {
            throw new AssertionError("another buffer wrote here");
        }
    }

    @Test
    void closesWhileLoopsAllocate() throws Exception {
        for (int round = 0; round < 50; round++) {
            RegisteredBufferPool busy =
                    new RegisteredBufferPool(domain, BufferPoolOptions.DEFAULTS.withChunkBytes(256 << 10));
            busy.attach(loop);
            CountDownLatch running = new CountDownLatch(1);
            io.netty.util.concurrent.Future<Integer> work = loop.submit(() -> {
                for (int i = 0; ; i++) {
                    try {
                        busy.allocate(100_000 * (i % 4 + 1)).release();
                    } catch (IllegalStateException closed) {
                        return i;
                    }
                    running.countDown();
                }
            });
            running.await();
            busy.close();
            work.get();
            on(loop, () -> 0);
            assertThat(domain.liveRegions()).isZero();
        }
    }

    @Test
    void allocatesNothingOnTheHeapOnceWarm() throws Exception {
        attach(loop);
        assertThat(on(loop, this::heapBytesOnceWarm)).as("on a loop").isLessThan(100);
        assertThat(heapBytesOnceWarm()).as("without a loop").isLessThan(100);
    }

    /**
     * The heap bytes that 8,000 buffers cost once everything is compiled; before that, the interpreter's own objects
     * count as well.
     */
    private long heapBytesOnceWarm() {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        long thread = Thread.currentThread().threadId();
        ScatterGatherList sges = new ScatterGatherList(2);
        long min = Long.MAX_VALUE;
        // On a busy machine the compiler may be late.
        long deadlineNanos = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
        while (min > 0 && System.nanoTime() < deadlineNanos) {
            long before = threads.getThreadAllocatedBytes(thread);
            exercise(sges, 2_000);
            min = Math.min(min, threads.getThreadAllocatedBytes(thread) - before);
        }
        for (int i = 0; i < window.length; i++) {
            window[i].release();
            window[i] = null;
        }
        return min;
    }

    private final RegisteredByteBuf[] window = new RegisteredByteBuf[16];

    private void exercise(ScatterGatherList sges, int rounds) {
        for (int i = 0; i < rounds; i++) {
            RegisteredByteBuf small = pool.allocate(100);
            RegisteredByteBuf large = pool.allocate(40_000);
            RegisteredByteBuf huge = pool.allocate(2 * CHUNK_BYTES);
            RegisteredByteBuf grown = pool.allocate(100, 5_000);
            small.writeLong(i).writeInt(i).writeBytes(large, 0, 10);
            large.writeBytes(small);
            grown.capacity(2_000);
            RegisteredByteBuf oldest = window[i % window.length];
            if (oldest != null) {
                oldest.release();
            }
            window[i % window.length] = pool.allocate(700_000);
            sges.clear();
            if (!RegisteredByteBuf.gather(large, domain, sges) || !RegisteredByteBuf.gather(grown, domain, sges)) {
                throw new AssertionError("not registered");
            }
            small.release();
            large.release();
            huge.release();
            grown.release();
        }
    }

    @Test
    void defersFreeingMemoryThatASystemCallUses() throws Exception {
        RegisteredByteBuf buffer = pool.allocate(100);
        var scope = buffer.segment().scope();
        ByteBuffer view = buffer.nioBuffer(0, 100);
        Pipe pipe = Pipe.open();
        CountDownLatch about = new CountDownLatch(1);
        Thread reader = Thread.ofPlatform().start(() -> {
            about.countDown();
            try {
                pipe.source().read(view);
            } catch (java.io.IOException failure) {
                throw new java.io.UncheckedIOException(failure);
            }
        });
        about.await();
        Patience.until("it is in the system call", () -> {
            StackTraceElement[] stack = reader.getStackTrace();
            return stack.length > 0
                    && stack[0].isNativeMethod()
                    && stack[0].getMethodName().startsWith("read");
        });
        buffer.release();
        pool.close();
        assertThat(domain.liveRegions()).isZero();
        assertThat(scope.isAlive()).isTrue();
        pipe.sink().write(ByteBuffer.allocate(1));
        reader.join();
        Patience.until("the memory is freed", () -> !scope.isAlive());
        pipe.sink().close();
        pipe.source().close();
    }
}
