package org.verbena.transport.stat;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.slf4j.LoggerFactory;
import org.verbena.transport.ClientStatistics;
import org.verbena.transport.MessageStatistics;
import org.verbena.transport.spi.ChildJvm;
import org.verbena.transport.spi.NoThreads;

/** What is written is read, and nothing else is taken for it. */
@Timeout(240)
class StatFileTest {
    private static final int ROWS = 4;
    private static final long PID = ProcessHandle.current().pid();

    @TempDir
    private Path folder;

    private StatDirectory directory;

    private StatFile file;

    private Path path;

    @BeforeEach
    void create() throws IOException {
        directory = StatDirectory.ownAt(folder.resolve("verbena"));
        directory.prepare();
        file = StatFile.create(directory, ROWS);
        path = directory.fileOf(PID);
    }

    private ProcessReading read() throws IOException {
        file.copy();
        return StatReader.read(path);
    }

    private ConnectionRow newConnection(String reason) {
        ConnectionRow row = file.newConnection("soft", reason, "ACCEPTOR", "MESSAGE", 17);
        assertThat(row).isNotNull();
        return row;
    }

    @Test
    void namesItsProcess() throws IOException {
        ProcessReading process = read();
        assertThat(process.pid()).isEqualTo(PID);
        assertThat(process.alive()).isTrue();
        assertThat(process.stopped()).isFalse();
        assertThat(process.command()).isNotEmpty().doesNotContain(" ");
        assertThat(process.javaVersion()).isEqualTo(System.getProperty("java.version"));
        assertThat(process.startedMillis()).isBetween(1L, System.currentTimeMillis());
        assertThat(process.connections()).isEmpty();
        assertThat(process.loops()).isEmpty();
        assertThat(process.lastErrors()).isEmpty();
    }

    /** In a process of its own: it ends with 0 if all is well. */
    @Test
    void aProcessThatHasNoThreadForItGoesOnWithout() throws Exception {
        assertThat(ChildJvm.run(
                        List.of("-D" + StatFile.PROPERTY + "=true", "-Djava.io.tmpdir=" + folder),
                        ShortOfThreads.class))
                .contains(OutOfMemoryError.class.getName());
    }

    static final class ShortOfThreads {
        private ShortOfThreads() {}

        public static void main(String... arguments) throws IOException {
            ((Logger) LoggerFactory.getLogger(StatFile.class)).setLevel(Level.INFO);
            NoThreads.during(() -> {
                if (StatFile.own() != null) {
                    throw new AssertionError("it has figures that nobody copies");
                }
            });
            StatFile.removeOwn();
            if (Files.exists(StatDirectory.ofUser().fileOf(PID))) {
                throw new AssertionError("it has left a file");
            }
        }
    }

    @Test
    void readsALoop() throws IOException {
        LoopRow loop = file.newLoop();
        assertThat(loop).isNotNull();
        loop.began("soft", 5);
        loop.polled(1_000);
        loop.counted(900, 150, 3, 7_000, 11);
        assertThat(read().loops())
                .containsExactly(new LoopReading(
                        0,
                        Thread.currentThread().threadId(),
                        Thread.currentThread().getName(),
                        "soft",
                        true,
                        1_000,
                        900,
                        150,
                        3,
                        7_000,
                        11));
        loop.waits();
        assertThat(read().loops().getFirst().running()).isFalse();
        loop.runs(12);
        LoopReading running = read().loops().getFirst();
        assertThat(running.lastTurnNanos()).isEqualTo(12);
        assertThat(running.hangs(running, 112, 100)).isTrue();
        assertThat(running.hangs(running, 111, 100)).isFalse();
        loop.polled(1_001);
        assertThat(read().loops().getFirst().hangs(running, 112, 100))
                .as("it has polled")
                .isFalse();
        loop.close();
        assertThat(read().loops()).isEmpty();
    }

    @Test
    void readsAProvider() throws IOException {
        ProviderRow provider = file.newProvider("soft", "iWARP over TCP");
        assertThat(provider).isNotNull();
        provider.connections(2, 5, 1);
        provider.plainConnections(3, 7);
        provider.registered(4096);
        provider.waiting(9);
        assertThat(read().providers())
                .containsExactly(new ProviderReading("soft", "iWARP over TCP", 4096, 2, 5, 1, 3, 7, 9));
    }

    @Test
    void aMalformedNumberOfRowsIsNamed() {
        System.setProperty(StatFile.CONNECTIONS_PROPERTY, "many");
        try {
            assertThatExceptionOfType(IllegalArgumentException.class)
                    .isThrownBy(StatFile::connectionRows)
                    .withMessageContaining("org.verbena.stat.connections is 'many'");
            System.setProperty(StatFile.CONNECTIONS_PROPERTY, " 7 ");
            assertThat(StatFile.connectionRows()).isEqualTo(7);
        } finally {
            System.clearProperty(StatFile.CONNECTIONS_PROPERTY);
        }
    }

    @Test
    void hasEveryCounterOfAConnection() {
        assertThat(ConnectionRow.COUNTERS).isEqualTo(MessageStatistics.class.getRecordComponents().length);
        assertThat(StatLayout.CLIENT_NUMBER_COUNT).isEqualTo(ClientStatistics.NONE.numbers().length);
    }

    @Test
    void readsAClientThatItAsksForItsFigures() throws IOException {
        ClientStatistics[] figures = {
            new ClientStatistics("a:1", "BACKING_OFF", "nobody listens", 1, 2, 3, 4, 5, 6, 7),
            new ClientStatistics("a:1", "READY", "nobody listens", 0, 0, 8, 4, 5, 6, 7)
        };
        int[] now = {0};
        ClientRow row = file.newClient(() -> figures[now[0]]);
        assertThat(read().clients()).containsExactly(figures[0]);
        now[0] = 1;
        assertThat(read().clients()).containsExactly(figures[1]);
        row.close();
        assertThat(read().clients()).isEmpty();
    }

    @Test
    void readsAConnection() throws IOException {
        long[] counters = new long[ConnectionRow.COUNTERS];
        Arrays.setAll(counters, i -> 100 + i);
        ConnectionRow row = newConnection("requested by name");
        row.addresses("127.0.0.1:1", "127.0.0.1:2");
        row.phase("HANDSHAKE");
        row.phase("ACTIVE");
        row.agreed(63);
        row.counted(counters, 23);
        row.active(29);
        row.answered(1_000_000);
        row.answered(2_000_000);
        row.label("billing");
        row.missed();
        row.missed();
        row.failed("the handler failed: \u001b[31mred");
        ConnectionReading connection = read().connections().getFirst();
        assertThat(connection.local()).isEqualTo("127.0.0.1:1");
        assertThat(connection.peer()).isEqualTo("127.0.0.1:2");
        assertThat(connection.provider()).isEqualTo("soft");
        assertThat(connection.reason()).isEqualTo("requested by name");
        assertThat(connection.role()).isEqualTo("ACCEPTOR");
        assertThat(connection.framing()).isEqualTo("MESSAGE");
        assertThat(connection.phase()).isEqualTo("ACTIVE");
        assertThat(connection.threadId()).isEqualTo(Thread.currentThread().threadId());
        assertThat(connection.begunNanos()).isEqualTo(17);
        assertThat(connection.peerWindow()).isEqualTo(63);
        assertThat(connection.stalledSinceNanos()).isEqualTo(23);
        assertThat(connection.lastActivityNanos()).isEqualTo(29);
        assertThat(connection.counters()).isEqualTo(MessageStatistics.of(counters));
        assertThat(connection.counters().queuedBytes()).isEqualTo(120);
        assertThat(connection.label()).isEqualTo("billing");
        assertThat(connection.missedBroadcasts()).isEqualTo(2);
        assertThat(connection.latency().count()).isEqualTo(2);
        assertThat(connection.error()).as("without what acts on a terminal").isEqualTo("the handler failed:  [31mred");
        assertThat(connection.errorMillis()).isPositive();
        assertThat(read().openConnections()).isEqualTo(1);
    }

    @Test
    void aRowThatIsUsedAgainHasNothingOfItsFormerOwner() throws IOException {
        ConnectionRow first = newConnection("first");
        long[] counters = new long[ConnectionRow.COUNTERS];
        Arrays.fill(counters, 7);
        first.counted(counters, 1);
        first.answered(5_000);
        first.failed("an error");
        first.phase("ACTIVE");
        ConnectionReading before = read().connections().getFirst();
        first.close();
        first.close();
        first.failed("too late");
        assertThat(read().connections()).isEmpty();
        assertThat(read().openConnections()).isZero();

        ConnectionRow second = file.newConnection("soft", "second", "INITIATOR", "RAW", 18);
        assertThat(second).isNotNull();
        first.failed("too late");
        ConnectionReading now = read().connections().getFirst();
        assertThat(now.index()).isEqualTo(before.index());
        assertThat(now.isSame(before)).isFalse();
        assertThat(now.reason()).isEqualTo("second");
        assertThat(now.phase()).isEmpty();
        assertThat(now.error()).isEmpty();
        assertThat(now.counters()).isEqualTo(MessageStatistics.of(new long[ConnectionRow.COUNTERS]));
        assertThat(now.latency().count()).isZero();
        assertThat(now.stalledSinceNanos()).isZero();
    }

    @Test
    void countsConnectionsBeyondTheRows() throws IOException {
        ConnectionRow first = newConnection("0");
        for (int i = 1; i < ROWS; i++) {
            newConnection("" + i);
        }
        assertThat(file.newConnection("soft", "", "", "", 0)).isNull();
        assertThat(file.newConnection("soft", "", "", "", 0)).isNull();
        ProcessReading full = read();
        assertThat(full.openConnections()).isEqualTo(ROWS + 2);
        assertThat(full.connectionsWithoutRow()).isEqualTo(2);
        assertThat(full.connections()).hasSize(ROWS);
        file.endedWithoutRow();
        first.close();
        assertThat(read().openConnections()).isEqualTo(ROWS);
        assertThat(read().connectionsWithoutRow()).isEqualTo(1);
        assertThat(newConnection("again")).isNotNull();
        for (int i = 0; i < StatLayout.LOOPS; i++) {
            assertThat(file.newLoop()).isNotNull();
        }
        assertThat(file.newLoop()).isNull();
    }

    @Test
    void keepsTheLastErrors() throws IOException {
        for (int i = 0; i < 3; i++) {
            file.failed("soft", null, "peer", "cause " + i);
        }
        assertThat(read().lastErrors()).extracting(EndedReading::why).containsExactly("cause 2", "cause 1", "cause 0");
        for (int i = 3; i < StatLayout.ENDED + 5; i++) {
            file.failed("soft", "local", "peer", "cause " + i);
        }
        ProcessReading process = read();
        assertThat(process.failedConnections()).isEqualTo(StatLayout.ENDED + 5);
        assertThat(process.lastErrors()).hasSize(StatLayout.ENDED);
        assertThat(process.lastErrors().getFirst().why()).isEqualTo("cause " + (StatLayout.ENDED + 4));
        assertThat(process.lastErrors().getLast().why()).isEqualTo("cause 5");
    }

    @Test
    void cutsTextsAtACharacter() throws IOException {
        newConnection("\u00e9".repeat(StatLayout.REASON_BYTES));
        // One byte less than there is room for, since a character takes two.
        assertThat(read().connections().getFirst().reason())
                .isEqualTo("\u00e9".repeat((StatLayout.REASON_BYTES - Integer.BYTES) / 2));
    }

    @Test
    void neverShowsHalfOfAChange() throws Exception {
        ConnectionRow row = newConnection("");
        row.addresses("a".repeat(60), "a".repeat(60));
        AtomicBoolean done = new AtomicBoolean();
        Thread writer = Thread.ofPlatform().start(() -> {
            for (int i = 0; !done.get(); i++) {
                String text = (i % 2 == 0 ? "b" : "a").repeat(20 + i % 40);
                row.addresses(text, text);
            }
        });
        try {
            for (int i = 0; i < 500; i++) {
                for (ConnectionReading reading : read().connections()) {
                    assertThat(reading.local()).isNotEmpty().isEqualTo(reading.peer());
                }
            }
        } finally {
            done.set(true);
            writer.join();
        }
    }

    // ---- files that are not, or no longer, what this version writes

    private void refused(byte[] bytes, String why) throws IOException {
        Path other = Files.write(folder.resolve("1"), bytes);
        assertThatExceptionOfType(IOException.class)
                .isThrownBy(() -> StatReader.read(other))
                .withMessageContaining(other.toString())
                .withMessageContaining(why);
    }

    private byte[] bytes() throws IOException {
        file.copy();
        return Files.readAllBytes(path);
    }

    private byte[] with(long offset, int value) throws IOException {
        byte[] bytes = bytes();
        ByteBuffer.wrap(bytes).order(ByteOrder.nativeOrder()).putInt((int) offset, value);
        return bytes;
    }

    @Test
    void refusesOtherFiles() throws IOException {
        refused(new byte[0], "only 0 bytes");
        refused(new byte[StatLayout.HEADER_BYTES], "not complete");
        refused("#!/bin/sh\n".repeat(1000).getBytes(java.nio.charset.StandardCharsets.US_ASCII), "not a file of");
        refused(with(StatLayout.VERSION_AT, 1), "has version 1");
        refused(with(StatLayout.ORDER_AT, Integer.reverseBytes(StatLayout.ORDER)), "other byte order");
        refused(with(StatLayout.ORDER_AT, 99), "damaged");
        refused(with(StatLayout.CONNECTION_ROWS, 0), "rows for 0");
        refused(with(StatLayout.CONNECTION_ROWS, Integer.MAX_VALUE), "rows for " + Integer.MAX_VALUE);
        refused(with(StatLayout.CONNECTION_ROWS, ROWS + 1), "cut or damaged");
        refused(with(StatLayout.LENGTH, 5), "cut or damaged");
        assertThatExceptionOfType(StatException.class)
                .isThrownBy(() -> StatReader.read(folder))
                .withMessageContaining("not a regular file");
    }

    @Test
    void refusesAFileThatIsCut() throws IOException {
        byte[] whole = bytes();
        for (int length = 0; length < whole.length; length += 1 + length / 7) {
            refused(Arrays.copyOf(whole, length), length < StatLayout.HEADER_BYTES ? "only " + length : "cut");
        }
        refused(Arrays.copyOf(whole, whole.length - 1), "cut");
    }

    @Test
    void leavesAnotherFileOfItsName() throws IOException {
        Files.delete(path);
        StatCopier copier = new StatCopier(
                MemorySegment.ofArray(new long[Math.toIntExact(StatLayout.fileBytes(ROWS) / Long.BYTES)]),
                ROWS,
                () -> {});
        copier.open(directory, PID);
        copier.copy();
        Files.delete(path);
        Files.writeString(path, "another's");
        assertThatExceptionOfType(IOException.class).isThrownBy(copier::copy);
        copier.close();
        assertThat(path).hasContent("another's");
    }

    @Test
    void survivesDamage() throws IOException {
        LoopRow loop = file.newLoop();
        assertThat(loop).isNotNull();
        newConnection("a reason").addresses("here", "there");
        file.failed("soft", "here", "there", "why");
        long seed = System.nanoTime();
        System.out.println("StatFileTest.survivesDamage: seed " + seed);
        Random random = new Random(seed);
        int read = 0;
        for (int i = 0; i < 300; i++) {
            byte[] bytes = bytes();
            if (i % 3 == 0) {
                random.nextBytes(bytes);
                System.arraycopy(bytes(), 0, bytes, 0, i % 2 == 0 ? 0 : 64); // with a good beginning, or without
            } else {
                for (int n = random.nextInt(200); n >= 0; n--) {
                    bytes[random.nextInt(bytes.length)] = (byte) random.nextInt();
                }
            }
            Path damaged = Files.write(folder.resolve("2"), bytes);
            try {
                ProcessReading process = StatReader.read(damaged);
                assertThat(process.connections()).hasSizeLessThanOrEqualTo(ROWS);
                process.connections().forEach(connection -> connection.latency().percentileNanos(99));
                read++;
            } catch (IOException refused) {
                assertThat(refused).hasMessageContaining(damaged.toString());
            }
        }
        assertThat(read).as("rows may be damaged, and all else is read").isPositive();
    }

    // ---- the histogram

    @Test
    void bucketsAreWithinAnEighth() {
        int last = 0;
        for (long nanos = 1; nanos < 1L << 37; nanos += 1 + nanos / 50) {
            int bucket = LatencyHistogram.bucket(nanos);
            assertThat(bucket).isBetween(last, last + 1);
            last = bucket;
            if (nanos >= 1024) {
                assertThat((double) LatencyHistogram.nanos(bucket) / nanos).isBetween(7 / 8.0, 9 / 8.0);
            }
        }
        assertThat(LatencyHistogram.bucket(-1)).isZero();
        assertThat(LatencyHistogram.bucket((1L << 37) - 1)).isEqualTo(108);
        assertThat(LatencyHistogram.bucket(Long.MAX_VALUE)).isEqualTo(LatencyHistogram.BUCKETS - 1);
    }

    @Test
    void percentilesAreOfThoseInBetween() {
        long[] counts = new long[LatencyHistogram.BUCKETS];
        LatencyHistogram none = new LatencyHistogram(counts);
        assertThat(none.percentileNanos(50)).isZero();
        counts[LatencyHistogram.bucket(10_000)] = 98;
        LatencyHistogram fast = new LatencyHistogram(counts);
        counts[LatencyHistogram.bucket(10_000_000)] = 2;
        LatencyHistogram all = new LatencyHistogram(counts);
        assertThat(all.count()).isEqualTo(100);
        assertThat(all.percentileNanos(50)).isBetween(8_750L, 11_250L);
        assertThat(all.percentileNanos(98)).isBetween(8_750L, 11_250L);
        assertThat(all.percentileNanos(99)).isBetween(8_750_000L, 11_250_000L);
        LatencyHistogram slow = all.minus(fast);
        assertThat(slow.count()).isEqualTo(2);
        assertThat(slow.percentileNanos(1)).isBetween(8_750_000L, 11_250_000L);
    }
}
