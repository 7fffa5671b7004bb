package org.verbena.transport.shm;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.shm.ShmFixture.Pair;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RecordingEndpointHandler.Completion;
import org.verbena.transport.spi.WorkRequest;

/** Reads, writes and atomics that the initiator does by itself. */
@Timeout(240)
class DirectAccessTest {

    private static void fill(MemorySegment segment, long seed) {
        byte[] bytes = new byte[(int) segment.byteSize()];
        new Random(seed).nextBytes(bytes);
        MemorySegment.copy(bytes, 0, segment, ValueLayout.JAVA_BYTE, 0, bytes.length);
    }

    private static WorkRequest read(long id, RegisteredMemory to, RegisteredMemory from, int bytes) {
        WorkRequest request = new WorkRequest(1).asRead(id, 0, from.address(), from.remoteKey());
        request.buffers().add(to, 0, bytes);
        return request;
    }

    private static Completion read(Pair pair, long id, RegisteredMemory to, RegisteredMemory from, int bytes) {
        pair.client().send(read(id, to, from, bytes));
        return pair.client().awaitSend();
    }

    /** Reads until the peer's file is mapped, which takes a first read and a moment. */
    private static void introduce(ShmFixture fixture, Pair pair, RegisteredMemory from, RegisteredMemory to) {
        assertThat(read(pair, 0, to, from, 8).status()).isEqualTo(WorkStatus.SUCCESS);
        Patience.until("the peer reads by itself", () -> {
            boolean byItself = whileTheServerIsBusy(fixture, () -> {
                pair.client().send(read(1, to, from, 8));
                long start = System.nanoTime();
                while (pair.client().unclaimedCompletions() == 0 && System.nanoTime() - start < 50_000_000) {
                    Thread.onSpinWait();
                }
                return pair.client().unclaimedCompletions() > 0;
            });
            pair.client().awaitSend();
            return byItself;
        });
    }

    private static boolean whileTheServerIsBusy(ShmFixture fixture, BooleanSupplier check) {
        CountDownLatch busy = new CountDownLatch(1);
        CountDownLatch over = new CountDownLatch(1);
        fixture.serverLoop().execute(() -> {
            busy.countDown();
            awaitUninterruptibly(over);
        });
        awaitUninterruptibly(busy);
        try {
            return check.getAsBoolean();
        } finally {
            over.countDown();
        }
    }

    private static void awaitUninterruptibly(CountDownLatch latch) {
        try {
            assertThat(latch.await(Patience.LIMIT.toMillis(), TimeUnit.MILLISECONDS))
                    .isTrue();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void readsWhileTheOwnersLoopIsBusy() {
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS)) {
            Pair pair = fixture.connect();
            RegisteredMemory from = fixture.shared(fixture.provider.memoryDomain(), 3 << 20, Access.REMOTE_READ);
            RegisteredMemory to = fixture.region(3 << 20, Access.LOCAL_WRITE);
            fill(from.segment(), 1);
            introduce(fixture, pair, from, to);
            // One key for each message, as the protocol does it.
            RegisteredMemory piece = pair.server()
                    .awaitPrepared()
                    .connectionMemory()
                    .register(from.segment().asSlice(4096, 2 << 20), Set.of(Access.REMOTE_READ));
            boolean done = whileTheServerIsBusy(
                    fixture,
                    () -> read(pair, 2, to, piece, 2 << 20)
                            .equals(new Completion(2, WorkStatus.SUCCESS, 2 << 20, 0, 0)));
            assertThat(done).isTrue();
            assertThat(to.segment().asSlice(0, 2 << 20).mismatch(piece.segment()))
                    .isEqualTo(-1);
            piece.close();
            assertThat(read(pair, 3, to, piece, 8).status())
                    .as("once it is closed")
                    .isEqualTo(WorkStatus.REMOTE_ACCESS_ERROR);
        }
    }

    @Test
    void readsWhatItWroteBefore() {
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS)) {
            Pair pair = fixture.connect();
            RegisteredMemory table = fixture.shared(
                    fixture.provider.memoryDomain(), 4096, Access.LOCAL_WRITE, Access.REMOTE_READ, Access.REMOTE_WRITE);
            RegisteredMemory source = fixture.region(8, Access.LOCAL_WRITE);
            RegisteredMemory sink = fixture.region(8, Access.LOCAL_WRITE);
            introduce(fixture, pair, table, sink);
            for (long i = 1; i < 2000; i++) {
                source.segment().set(ValueLayout.JAVA_LONG, 0, i);
                WorkRequest write = new WorkRequest(1).asWrite(i, 0, table.address(), table.remoteKey());
                write.buffers().add(source, 0, 8);
                WorkRequest read = read(-i, sink, table, 8);
                pair.client().run(endpoint -> {
                    assertThat(pair.client().post(endpoint, write)).isTrue();
                    assertThat(pair.client().post(endpoint, read)).isTrue();
                    endpoint.flush();
                });
                assertThat(pair.client().awaitSend().workId()).isEqualTo(i);
                assertThat(pair.client().awaitSend().workId()).isEqualTo(-i);
                assertThat(sink.segment().get(ValueLayout.JAVA_LONG, 0)).isEqualTo(i);
            }
        }
    }

    private static final Access[] ALL = {
        Access.LOCAL_WRITE, Access.REMOTE_READ, Access.REMOTE_WRITE, Access.REMOTE_ATOMIC
    };

    private static WorkRequest add(long id, RegisteredMemory old, RegisteredMemory counter, long value) {
        WorkRequest request = new WorkRequest(1).asFetchAndAdd(id, 0, counter.address(), counter.remoteKey(), value);
        request.buffers().add(old, 0, 8);
        return request;
    }

    @Test
    void writesAndAddsWhileTheOwnersLoopIsBusy() {
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS)) {
            Pair pair = fixture.connect();
            RegisteredMemory table = fixture.shared(fixture.provider.memoryDomain(), 1 << 20, ALL);
            RegisteredMemory local = fixture.region(1 << 20, Access.LOCAL_WRITE);
            RegisteredMemory old = fixture.region(8, Access.LOCAL_WRITE);
            introduce(fixture, pair, table, old);
            fill(local.segment(), 3);
            pair.server().receive(9, old, 0, 8);
            boolean done = whileTheServerIsBusy(fixture, () -> {
                WorkRequest write = new WorkRequest(2).asWrite(1, 0, table.address() + 8, table.remoteKey());
                write.buffers().add(local, 8, 1000).add(local, 1008, (1 << 20) - 1008);
                pair.client().send(write);
                pair.client().awaitSend();
                pair.client().send(add(2, old, table, 5));
                pair.client().awaitSend();
                WorkRequest swap = new WorkRequest(1)
                        .asCompareAndSwap(3, 0, table.address(), table.remoteKey(), 5, Long.MIN_VALUE);
                swap.buffers().add(old, 0, 8);
                pair.client().send(swap);
                return pair.client().awaitSend().equals(new Completion(3, WorkStatus.SUCCESS, 8, 0, 0));
            });
            assertThat(done).isTrue();
            assertThat(old.segment().get(ValueLayout.JAVA_LONG, 0)).isEqualTo(5);
            assertThat(table.segment().get(ValueLayout.JAVA_LONG, 0)).isEqualTo(Long.MIN_VALUE);
            assertThat(table.segment().asSlice(8).mismatch(local.segment().asSlice(8)))
                    .isEqualTo(-1);
            WorkRequest tell = new WorkRequest(1).asWriteWithImmediate(4, 0, table.address(), table.remoteKey(), 77);
            tell.buffers().add(local, 0, 4096);
            pair.client().send(tell);
            assertThat(pair.client().awaitSend().status()).isEqualTo(WorkStatus.SUCCESS);
            assertThat(pair.server().awaitReceive())
                    .isEqualTo(new Completion(
                            9,
                            WorkStatus.SUCCESS,
                            4096,
                            EndpointHandler.WITH_IMMEDIATE | EndpointHandler.REMOTE_WRITE,
                            77));
            assertThat(table.segment().asSlice(0, 4096).mismatch(local.segment().asSlice(0, 4096)))
                    .isEqualTo(-1);
            table.close();
            pair.client().send(add(5, old, table, 1));
            assertThat(pair.client().awaitSend().status())
                    .as("once it is closed")
                    .isEqualTo(WorkStatus.REMOTE_ACCESS_ERROR);
        }
    }

    @Test
    void countsWithTheOwnersProgramWithoutLoss() throws InterruptedException {
        VarHandle counter = ValueLayout.JAVA_LONG.varHandle();
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS)) {
            Pair pair = fixture.connect();
            RegisteredMemory table = fixture.shared(fixture.provider.memoryDomain(), 4096, ALL);
            RegisteredMemory old = fixture.region(8, Access.LOCAL_WRITE);
            introduce(fixture, pair, table, old);
            int rounds = 2000;
            Thread owner = Thread.ofPlatform().start(() -> {
                for (int i = 0; i < 20 * rounds; i++) {
                    counter.getAndAdd(table.segment(), 0L, 1L);
                }
            });
            for (int i = 0; i < rounds; i++) {
                pair.client().send(add(i, old, table, 1_000_000));
                assertThat(pair.client().awaitSend().status()).isEqualTo(WorkStatus.SUCCESS);
            }
            owner.join();
            assertThat((long) counter.getVolatile(table.segment(), 0L)).isEqualTo(rounds * 1_000_020L);
        }
    }

    /** Pools are for all connections: what peers may write must be asked for. */
    @Test
    void doesNotLetPeersWriteTheMemoryOfPools() {
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS)) {
            Pair pair = fixture.connect();
            RegisteredMemory pool = fixture.shared(fixture.provider.memoryDomain(), 4096, Access.REMOTE_READ);
            RegisteredMemory table = fixture.provider.memoryDomain().register(pool.segment(), Set.of(ALL));
            RegisteredMemory old = fixture.region(8, Access.LOCAL_WRITE);
            introduce(fixture, pair, pool, old);
            assertThat(read(pair, 1, old, table, 8).status()).isEqualTo(WorkStatus.SUCCESS);
            boolean done = whileTheServerIsBusy(fixture, () -> {
                pair.client().send(add(2, old, table, 5));
                long start = System.nanoTime();
                while (pair.client().unclaimedCompletions() == 0 && System.nanoTime() - start < 50_000_000) {
                    Thread.onSpinWait();
                }
                return pair.client().unclaimedCompletions() > 0;
            });
            assertThat(done).as("done without the owner").isFalse();
            assertThat(pair.client().awaitSend().status()).isEqualTo(WorkStatus.SUCCESS);
            assertThat(pool.segment().get(ValueLayout.JAVA_LONG, 0)).isEqualTo(5);
            table.close();
        }
    }

    @Test
    void deniesWhatIsOutside() {
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS)) {
            Pair pair = fixture.connect();
            RegisteredMemory whole = fixture.shared(fixture.provider.memoryDomain(), 8192, Access.REMOTE_READ);
            RegisteredMemory sink = fixture.region(8192, Access.LOCAL_WRITE);
            introduce(fixture, pair, whole, sink);
            RegisteredMemory part = pair.server()
                    .awaitPrepared()
                    .connectionMemory()
                    .register(whole.segment().asSlice(0, 4096), Set.of(Access.REMOTE_READ));
            assertThat(read(pair, 1, sink, part, 4096).status()).isEqualTo(WorkStatus.SUCCESS);
            assertThat(read(pair, 2, sink, part, 4097).status()).isEqualTo(WorkStatus.REMOTE_ACCESS_ERROR);
            pair.client().awaitDisconnected();
            pair.server().awaitDisconnected();
            part.close();
        }
    }

    @Test
    void unmapsWhatThePeerHasFreed() throws IOException {
        Patience.until("what tests before it have mapped is unmapped", () -> mappings() == 0);
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS)) {
            Pair pair = fixture.connect();
            try (Arena arena = Arena.ofShared()) {
                RegisteredMemory from = fixture.provider
                        .memoryDomain()
                        .register(
                                fixture.provider.memoryDomain().allocate(arena, 8192, Set.of()),
                                Set.of(Access.REMOTE_READ));
                RegisteredMemory to = fixture.region(8, Access.LOCAL_WRITE);
                introduce(fixture, pair, from, to);
                assertThat(mappings()).isEqualTo(2);
                from.close();
            }
            Patience.until("both have unmapped it", () -> mappings() == 0);
            pair.client().awaitPrepared().disconnect();
        }
    }

    /** Mappings of pools' memory in this process, which is both peers. */
    private static long mappings() {
        try (Stream<String> maps = Files.lines(Path.of("/proc/self/maps"))) {
            return maps.filter(line -> line.contains("verbena-buffers")).count();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
