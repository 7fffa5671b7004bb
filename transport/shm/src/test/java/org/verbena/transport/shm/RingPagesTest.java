package org.verbena.transport.shm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.ThreadLocalRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
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

    /** Two pages for the positions, and a few for the data of each direction. */
    private static final long FEW_KIB = 64;

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
            ping(pair, memory, 256, 4096);
            assertFewPages();
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
                assertThat(residentKib())
                        .hasSize(2)
                        .allSatisfy(kib -> assertThat(kib)
                                .as("KiB in memory after a burst")
                                .isGreaterThan(2 * FEW_KIB));
                bursts.idle();
                assertFewPages();
                RegisteredMemory memory = fixture.region(4096, Access.LOCAL_WRITE);
                ping(bursts.pair, memory, 64, 4096);
                bursts.idle();
                assertFewPages();
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

    private static void assertFewPages() throws IOException {
        assertThat(residentKib())
                .as("KiB of the rings in memory, as each end has mapped them")
                .hasSize(2)
                .allSatisfy(kib -> assertThat(kib).isLessThanOrEqualTo(FEW_KIB));
    }

    /** Of each mapping of a ring. */
    private static List<Long> residentKib() throws IOException {
        List<Long> found = new ArrayList<>();
        boolean isRing = false;
        for (String line : Files.readAllLines(Path.of("/proc/self/smaps"))) {
            if (line.matches("[0-9a-f]+-[0-9a-f]+ .*")) {
                isRing = line.contains("memfd:verbena (deleted)");
            } else if (isRing && line.startsWith("Rss:")) {
                found.add(Long.parseLong(line.replaceAll("\\D", "")));
            }
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
            long data = ring.memory.address() + Ring.base(1, RING_BYTES) + Ring.CONTROL_BYTES;
            assertThat(range.address()).isEqualTo(data + (8 << 10));
            assertThat(range.address() + range.byteSize()).isEqualTo(data + RING_BYTES);
            for (int i = 0; i < 100; i++) {
                ring.write(1);
                assertThat(ring.read()).isOne();
                ring.ticks(2);
            }
            assertThat(ring.removed).as("after a message now and then").hasSize(1);
            ring.write(40);
            assertThat(ring.read()).isEqualTo(40);
            ring.ticks(2);
            assertThat(ring.removed).as("after another burst").hasSize(2);
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
