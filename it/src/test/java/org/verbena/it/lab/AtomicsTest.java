package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.ByteBuf;
import io.netty.util.concurrent.Future;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.verbena.api.ApiSuite;
import org.verbena.api.RdmaChannel;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.RemoteMemory;
import org.verbena.transport.spi.Patience;

/** Two clients at once on the same words of a server that does nothing. rxe only: siw has no atomics. */
@Tag("lab")
class AtomicsTest extends ApiSuite {
    private static final int LOCK = 0;
    private static final int COUNTER = 8;

    private final Arena arena = Arena.ofShared();
    private final ExecutorService threads = Executors.newFixedThreadPool(2);
    private final MemorySegment words = arena.allocate(64, 64);
    private final List<RdmaChannel> clients = new ArrayList<>();
    private Server server;
    private RegisteredMemory region;
    private RemoteMemory token;

    @Override
    protected String provider() {
        return "verbs";
    }

    @Override
    protected String host() {
        return LabDevice.RXE.address();
    }

    @BeforeEach
    void connectTwo() {
        server = listen();
        clients.add(connect(server));
        clients.add(connect(server));
        region = server.next()
                .sharedMemory()
                .register(words, Access.LOCAL_WRITE, Access.REMOTE_READ, Access.REMOTE_WRITE, Access.REMOTE_ATOMIC);
        token = region.remote();
    }

    @AfterEach
    void close() {
        clients.forEach(client -> done("closing", client.close()));
        server.close();
        region.whenGone(arena::close);
        region.close();
        threads.shutdownNow();
    }

    /** What both clients do at the same time, each with its own connection. */
    private interface Work {
        void run(RdmaChannel client, int number) throws Exception;
    }

    private void atOnce(Work work) throws Exception {
        CyclicBarrier start = new CyclicBarrier(2);
        List<java.util.concurrent.Future<?>> both = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            int number = i;
            both.add(threads.submit(() -> {
                start.await(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS);
                work.run(clients.get(number), number);
                return null;
            }));
        }
        for (java.util.concurrent.Future<?> one : both) {
            one.get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS);
        }
    }

    @Test
    void everyAdditionSeesAnotherValue() throws Exception {
        int rounds = 1000;
        long[][] seen = new long[2][rounds];
        CyclicBarrier bothHaveBegun = new CyclicBarrier(2);
        atOnce((client, number) -> {
            for (int begin = 0; begin < rounds; begin += 20) {
                if (begin == 20) {
                    bothHaveBegun.await(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS);
                }
                List<Future<Long>> some = new ArrayList<>();
                for (int i = 0; i < 20; i++) {
                    some.add(client.fetchAndAdd(token, COUNTER, 1));
                }
                for (int i = 0; i < 20; i++) {
                    seen[number][begin + i] = done("adding", some.get(i)).getNow();
                }
            }
        });
        assertThat(words.get(ValueLayout.JAVA_LONG, COUNTER)).isEqualTo(2L * rounds);
        // One client's additions are in order, all values were seen once, and the clients did take turns.
        assertThat(seen[0]).isSorted();
        assertThat(seen[1]).isSorted();
        long[] all = Arrays.copyOf(seen[0], 2 * rounds);
        System.arraycopy(seen[1], 0, all, rounds, rounds);
        Arrays.sort(all);
        for (int i = 0; i < all.length; i++) {
            assertThat(all[i]).isEqualTo(i);
        }
        assertThat(Math.max(seen[0][0], seen[1][0]))
                .as("the later one began before the earlier one ended")
                .isLessThan(Math.min(seen[0][rounds - 1], seen[1][rounds - 1]));
    }

    @Test
    void aLockByCompareAndSwapLetsOneInAtATime() throws Exception {
        int rounds = 100;
        int[] refusals = new int[2];
        AtomicBoolean isFirst = new AtomicBoolean(true);
        CountDownLatch otherIsRefused = new CountDownLatch(1);
        atOnce((client, number) -> {
            long mine = number + 1;
            ByteBuf counter = client.alloc().buffer(8, 8);
            for (int i = 0; i < rounds; i++) {
                while (done("locking", client.compareAndSwap(token, LOCK, 0, mine))
                                .getNow()
                        != 0) {
                    refusals[number]++;
                    otherIsRefused.countDown();
                }
                if (isFirst.getAndSet(false)) {
                    assertThat(otherIsRefused.await(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                            .as("the other has found the lock taken")
                            .isTrue();
                }
                // Not atomic: without the lock, additions would be lost.
                done("reading", client.read(token, COUNTER, counter.clear()));
                long value = counter.readLongLE();
                done("writing", client.write(token, COUNTER, counter.clear().writeLongLE(value + 1)));
                assertThat(done("unlocking", client.compareAndSwap(token, LOCK, mine, 0))
                                .getNow())
                        .isEqualTo(mine);
            }
            counter.release();
        });
        System.out.println("locked out: " + Arrays.toString(refusals));
        assertThat(words.get(ValueLayout.JAVA_LONG_UNALIGNED, COUNTER)).isEqualTo(2L * rounds);
        assertThat(words.get(ValueLayout.JAVA_LONG, LOCK)).isZero();
        assertThat(refusals[0] + refusals[1])
                .as("the clients got in each other's way")
                .isPositive();
    }
}
