package org.verbena.transport.shm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.ffm.Errno;
import org.verbena.transport.ffm.ErrnoException;
import org.verbena.transport.ffm.MappedMemory;
import org.verbena.transport.shm.ShmFixture.Pair;
import org.verbena.transport.shm.ffm.SharedFile;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.transport.spi.WorkRequest;

/** How much of its rings a connection keeps in memory. */
@Timeout(240)
class RingPagesTest {

    /** What an idle connection keeps: a page for the positions, and one for the data of each direction. */
    static final long IDLE_KIB = 12;

    /** The name of a connection's file. */
    static final String RING = "/memfd:verbena (deleted)";

    private static final int RING_BYTES = 64 << 10;

    private static void ping(Pair pair, RegisteredMemory memory, int messages, int bytes) {
        for (int i = 0; i < messages; i++) {
            pair.server().receive(i, memory, 0, bytes);
            send(pair.client(), memory, bytes);
            pair.client().awaitSend();
            pair.server().awaitReceive();
        }
    }

    private static void send(RecordingEndpointHandler from, RegisteredMemory memory, int bytes) {
        WorkRequest send = new WorkRequest(1).asSend(1, 0);
        send.buffers().add(memory, 0, bytes);
        from.send(send);
    }

    @Test
    void oneMessageAtATimeUsesAFewPages() throws IOException {
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS)) {
            Pair pair = fixture.connect();
            RegisteredMemory memory = fixture.region(4096, Access.LOCAL_WRITE);
            ping(pair, memory, 4096, 64);
            assertIdle();
            ping(pair, memory, 256, 4096);
            fixture.tick();
            fixture.tick();
            assertIdle();
            pair.client().awaitPrepared().disconnect();
        }
    }

    /** As messages by rendezvous are: opened, read by the peer, and closed. */
    @Test
    void anIdleConnectionGivesBackItsTable() throws IOException {
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS)) {
            Pair pair = fixture.connect();
            RegisteredMemory to = fixture.region(4096, Access.LOCAL_WRITE);
            Set<Access> rights = Set.of(Access.REMOTE_READ);
            MemorySegment from = fixture.provider.memoryDomain().allocate(fixture.arena, 4096, rights);
            MemoryDomain own = pair.server().awaitPrepared().connectionMemory();
            for (int round = 0; round < 3; round++) {
                for (int i = 0; i < 200; i++) {
                    from.set(ValueLayout.JAVA_INT, 0, i);
                    try (RegisteredMemory opened = own.register(from, rights)) {
                        WorkRequest read = new WorkRequest(1).asRead(i, 0, opened.address(), opened.remoteKey());
                        read.buffers().add(to, 0, 4096);
                        pair.client().send(read);
                        assertThat(pair.client().awaitSend().status()).isEqualTo(WorkStatus.SUCCESS);
                    }
                    assertThat(to.segment().get(ValueLayout.JAVA_INT, 0)).isEqualTo(i);
                }
                assertThat(ringKib())
                        .as("while it is used")
                        .allSatisfy(kib -> assertThat(kib).isGreaterThan(IDLE_KIB));
                try (RegisteredMemory open = own.register(from, rights)) {
                    fixture.tick();
                    fixture.tick();
                    assertThat(ringKib())
                            .as("while memory is open")
                            .allSatisfy(kib -> assertThat(kib).isGreaterThan(IDLE_KIB));
                    assertThat(open.isClosed()).isFalse();
                }
                fixture.tick();
                fixture.tick();
                assertIdle();
            }
            pair.client().awaitPrepared().disconnect();
        }
    }

    /** Memory of the program's own cannot be opened, but the peer has looked for it. */
    @Test
    void anIdleConnectionGivesBackATableInWhichNothingWasFound() throws IOException {
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS)) {
            Pair pair = fixture.connect();
            RegisteredMemory to = fixture.region(4096, Access.LOCAL_WRITE);
            Set<Access> rights = Set.of(Access.REMOTE_READ);
            MemorySegment from = fixture.arena.allocate(4096);
            MemoryDomain own = pair.server().awaitPrepared().connectionMemory();
            for (int i = 0; i < 200; i++) {
                try (RegisteredMemory opened = own.register(from, rights)) {
                    WorkRequest read = new WorkRequest(1).asRead(i, 0, opened.address(), opened.remoteKey());
                    read.buffers().add(to, 0, 4096);
                    pair.client().send(read);
                    assertThat(pair.client().awaitSend().status()).isEqualTo(WorkStatus.SUCCESS);
                }
            }
            assertThat(ringKib())
                    .as("while it is used")
                    .anySatisfy(kib -> assertThat(kib).isGreaterThan(IDLE_KIB));
            for (int i = 0; i < 4; i++) {
                fixture.tick();
            }
            assertIdle();
            pair.client().awaitPrepared().disconnect();
        }
    }

    /** Messages through all of the ring, with what arrives compared. */
    private static final class Bursts {
        private final ShmFixture fixture;
        private final Pair pair;
        private final int bytes;
        private final RegisteredMemory from;
        private final RegisteredMemory atServer;
        private final RegisteredMemory atClient;
        private final SplittableRandom random;

        Bursts(ShmFixture fixture, int bytes) {
            this.fixture = fixture;
            this.bytes = bytes;
            pair = fixture.connect();
            from = fixture.region(bytes, Access.LOCAL_WRITE);
            atServer = fixture.region(bytes, Access.LOCAL_WRITE);
            atClient = fixture.region(bytes, Access.LOCAL_WRITE);
            long seed = ThreadLocalRandom.current().nextLong();
            System.out.println("bursts: seed " + seed);
            random = new SplittableRandom(seed);
        }

        /** Both ways at once, with ticks while they are on their way. */
        void burst(int ticks) {
            byte[] data = new byte[bytes];
            random.nextBytes(data);
            MemorySegment.copy(MemorySegment.ofArray(data), 0, from.segment(), 0, bytes);
            pair.server().receive(1, atServer, 0, bytes);
            pair.client().receive(1, atClient, 0, bytes);
            send(pair.client(), from, bytes);
            send(pair.server(), from, bytes);
            for (int i = 0; i < ticks; i++) {
                fixture.tick();
            }
            pair.client().awaitSend();
            pair.server().awaitSend();
            pair.client().awaitReceive();
            pair.server().awaitReceive();
            assertThat(atServer.segment().mismatch(from.segment())).isEqualTo(-1);
            assertThat(atClient.segment().mismatch(from.segment())).isEqualTo(-1);
        }

        /** From one tick to the next nothing is said. */
        void idle() {
            fixture.tick();
            fixture.tick();
        }
    }

    @Test
    void anIdleConnectionGivesBackWhatABurstUsed() throws IOException {
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS)) {
            Bursts bursts = new Bursts(fixture, 4 << 20);
            for (int i = 0; i < 3; i++) {
                bursts.burst(0);
                assertThat(ringKib())
                        .hasSize(2)
                        .allSatisfy(kib -> assertThat(kib)
                                .as("KiB in memory after a burst")
                                .isGreaterThan(10 * IDLE_KIB));
                bursts.idle();
                assertIdle();
                RegisteredMemory memory = fixture.region(4096, Access.LOCAL_WRITE);
                ping(bursts.pair, memory, 64, 4096);
                bursts.idle();
                assertIdle();
            }
            bursts.pair.client().awaitPrepared().disconnect();
        }
    }

    @Test
    void pagesComeAndGoUnderTraffic() {
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS)) {
            Bursts bursts = new Bursts(fixture, 200_000);
            for (int i = 0; i < 200; i++) {
                bursts.burst(i % 4);
            }
            bursts.pair.client().awaitPrepared().disconnect();
        }
    }

    private static void assertIdle() {
        assertThat(ringKib())
                .as("KiB of the connection in memory, as each end has mapped it")
                .hasSize(2)
                .allSatisfy(kib -> assertThat(kib).isLessThanOrEqualTo(IDLE_KIB));
    }

    private static List<Long> ringKib() {
        return residentKib(name -> name.equals(RING));
    }

    /** How much of each mapping of such files is in memory. */
    static List<Long> residentKib(Predicate<String> files) {
        List<Long> found = new ArrayList<>();
        boolean isSought = false;
        try (Stream<String> lines = Files.lines(Path.of("/proc/self/smaps"))) {
            for (String line : (Iterable<String>) lines::iterator) {
                if (line.matches("[0-9a-f]+-[0-9a-f]+ .*")) {
                    int name = line.indexOf('/');
                    isSought = name >= 0 && files.test(line.substring(name));
                } else if (isSought && line.startsWith("Rss:")) {
                    found.add(Long.parseLong(line.replaceAll("\\D", "")));
                }
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return found;
    }

    /** A ring of one thread, which counts what it gives back. */
    private static final class Counted {
        final List<MemorySegment> removed = new ArrayList<>();
        final MemorySegment memory;
        final RingWriter writer;
        final RingReader reader;

        Counted(Arena arena, boolean isRefused) {
            memory = arena.allocate(Ring.fileBytes(RING_BYTES), 4096);
            writer = new RingWriter(memory, 1, RING_BYTES, range -> {
                removed.add(range);
                if (isRefused) {
                    throw new IOException("refused");
                }
                range.fill((byte) 0);
            });
            reader = new RingReader(memory, 1, RING_BYTES);
        }

        /** Writes records of 1 KiB and a header. */
        void write(int records) {
            for (int i = 0; i < records; i++) {
                assertThat(writer.claim(1024, 1024)).isEqualTo(1024);
                writer.commit(Ring.SEND, Ring.FIRST | Ring.LAST, 1024, 0, 0, 0, 1024, 7);
            }
            boolean unused = writer.publish();
        }

        /** Reads all, and gives how many records there were. */
        int read() {
            int records = 0;
            while (reader.next()) {
                if (reader.opcode() != Ring.PADDING) {
                    assertThat(reader.id()).isEqualTo(7);
                    records++;
                }
                reader.consume();
            }
            boolean unused = reader.release();
            return records;
        }

        void ticks(int count) {
            for (int i = 0; i < count; i++) {
                writer.onTick();
            }
        }
    }

    @Test
    void givesBackOnceAfterABurst() {
        try (Arena arena = Arena.ofConfined()) {
            Counted ring = new Counted(arena, false);
            ring.write(40);
            assertThat(ring.read()).isEqualTo(40);
            ring.ticks(5);
            assertThat(ring.removed).hasSize(1);
            MemorySegment range = ring.removed.getFirst();
            long data = ring.memory.address() + Ring.data(1, RING_BYTES);
            assertThat(range.address()).isEqualTo(data + RingWriter.KEPT_BYTES);
            assertThat(range.address() + range.byteSize()).isEqualTo(data + RING_BYTES);
            for (int i = 0; i < 100; i++) {
                ring.write(1);
                assertThat(ring.read()).isOne();
                ring.ticks(2);
            }
            // The first of them begins again at the start, with a padding behind the burst.
            assertThat(ring.removed).as("after a message now and then").hasSize(2);
            ring.write(40);
            assertThat(ring.read()).isEqualTo(40);
            ring.ticks(2);
            assertThat(ring.removed).as("after another burst").hasSize(3);
        }
    }

    @Test
    void keepsThePagesOfARingInUse() {
        try (Arena arena = Arena.ofConfined()) {
            Counted ring = new Counted(arena, false);
            for (int i = 0; i < 20; i++) {
                ring.write(40);
                assertThat(ring.read()).isEqualTo(40);
                ring.ticks(1);
            }
            assertThat(ring.removed).as("between bursts").isEmpty();
            ring.write(40);
            ring.ticks(3);
            assertThat(ring.removed).as("before they are read").isEmpty();
            assertThat(ring.read()).isEqualTo(40);
            ring.ticks(1);
            assertThat(ring.removed).hasSize(1);
        }
    }

    @Test
    void asksNoMoreWhenTheKernelRefuses() {
        try (Arena arena = Arena.ofConfined()) {
            Counted ring = new Counted(arena, true);
            for (int i = 0; i < 3; i++) {
                ring.write(40);
                assertThat(ring.read()).isEqualTo(40);
                ring.ticks(3);
            }
            assertThat(ring.removed).hasSize(1);
        }
    }

    @Test
    void removesOnlyWholePagesOfTheRange() throws IOException {
        SharedFile file = SharedFile.create("verbena-test", 1 << 20, false);
        MemorySegment memory = file.memory();
        try {
            memory.fill((byte) 7);
            SharedFile.removePages(memory.asSlice(1, 1)); // no page at all
            SharedFile.removePages(memory.asSlice((128 << 10) + 1, (512 << 10) - 2));
            MemorySegment kept = memory.asSlice(0, (128 << 10) + 1);
            assertThat(kept.toArray(ValueLayout.JAVA_BYTE)).containsOnly(7);
            assertThat(memory.get(ValueLayout.JAVA_BYTE, 256 << 10)).isZero();
            assertThat(memory.asSlice((640 << 10) - 1).toArray(ValueLayout.JAVA_BYTE))
                    .containsOnly(7);
        } finally {
            file.close();
            MappedMemory.unmap(memory);
        }
    }

    @Test
    void saysWhenASealForbidsIt() throws IOException {
        SharedFile file = SharedFile.create("verbena-test", 1 << 20, true);
        MemorySegment memory = file.memory();
        try {
            memory.fill((byte) 7);
            assertThatThrownBy(() -> SharedFile.removePages(memory))
                    .isInstanceOfSatisfying(
                            ErrnoException.class, e -> assertThat(e.errno()).isEqualTo(Errno.EPERM));
            assertThat(memory.toArray(ValueLayout.JAVA_BYTE)).containsOnly(7);
        } finally {
            file.close();
            MappedMemory.unmap(memory);
        }
    }
}
