package org.verbena.samples.kv;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.samples.Samples;
import org.verbena.samples.ServerProcess;
import org.verbena.samples.command.CommandFailure;
import picocli.CommandLine;

/**
 * The key-value server and its clients on the soft provider: values that are whole, locks that one client has at a
 * time.
 */
@Timeout(240)
class KvTest {
    private static final String HOST = "127.0.0.1";

    /** Enough that the loops of both providers are busy at the same time. */
    private static final int AT_ONCE = 1000;

    private static final KvFormat.Geometry SMALL = KvFormat.Geometry.of(64, 1000);

    /** What a command answered. */
    private record Answer(int exitCode, String out, String err) {}

    private static KvServer.Service server(KvFormat.Geometry geometry) {
        return new KvServer.Service("soft", HOST, 0, geometry);
    }

    private static KvConnection connect(KvServer.Service server) throws InterruptedException {
        return new KvConnection("soft", HOST, server.port());
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static Optional<String> get(KvConnection client, String key) throws InterruptedException {
        return KvConnection.await(client.get(KvFormat.key(key))).map(KvFormat.Item::text);
    }

    private static Answer run(int port, String... command) {
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        CommandLine line = Samples.commandLine("kv-client")
                .setOut(new PrintWriter(out, true))
                .setErr(new PrintWriter(err, true));
        List<String> args = new ArrayList<>(List.of("kv-client"));
        args.addAll(List.of(command));
        args.addAll(List.of("--provider", "soft", "--port", "" + port));
        int exitCode = line.execute(args.toArray(String[]::new));
        return new Answer(exitCode, out.toString(), err.toString());
    }

    @Test
    void getsWhatWasPut() throws InterruptedException {
        try (KvServer.Service server = server(SMALL);
                KvConnection client = connect(server);
                KvConnection other = connect(server)) {
            assertThat(get(client, "a")).isEmpty();
            assertThat(client.put(bytes("a"), bytes("1"), 0)).isEqualTo(2);
            assertThat(get(client, "a")).contains("1");
            assertThat(client.put(bytes("a"), bytes("22"), 0)).isEqualTo(4);
            assertThat(get(other, "a")).contains("22");
            assertThat(other.put(bytes("a"), bytes(""), 0)).isEqualTo(6);
            assertThat(get(client, "a")).contains("");
            assertThat(other.put(bytes("grüße 🌿"), bytes("日本語"), 0)).isEqualTo(2);
            assertThat(get(client, "grüße 🌿")).contains("日本語");
            assertThat(client.owner()).isNotEqualTo(other.owner());
        }
    }

    /** Each provider has a loop, and so a thread, of its own. */
    @Test
    void countsThePutsOfAllProviders() throws Exception {
        assertThat(putsOfTwoProviders(4_000)).isEqualTo(8_000);
    }

    @Test
    @Tag("full")
    void countsManyPutsOfAllProviders() throws Exception {
        assertThat(putsOfTwoProviders(20_000)).isEqualTo(40_000);
    }

    private static byte[] put(String key, String value) {
        byte[] keyBytes = bytes(key);
        byte[] valueBytes = bytes(value);
        return ByteBuffer.allocate(1 + Long.BYTES + Short.BYTES + keyBytes.length + valueBytes.length)
                .put(KvFormat.PUT)
                .putLong(0)
                .putShort((short) keyBytes.length)
                .put(keyBytes)
                .put(valueBytes)
                .array();
    }

    private static long putsOfTwoProviders(int puts) throws Exception {
        try (KvServer.Service server = new KvServer.Service("shm+soft", HOST, 0, KvFormat.Geometry.of(1024, 16));
                ExecutorService both = Executors.newFixedThreadPool(2)) {
            List<Callable<Void>> clients = new ArrayList<>();
            for (String provider : List.of("shm", "soft")) {
                clients.add(() -> {
                    try (KvConnection client = new KvConnection(provider, HOST, server.port())) {
                        for (int i = 0; i < puts; i += AT_ONCE) {
                            List<CompletableFuture<byte[]>> answers = new ArrayList<>();
                            for (int j = 0; j < AT_ONCE; j++) {
                                answers.add(client.client().request(put(provider + j % 50, "x")));
                            }
                            for (CompletableFuture<byte[]> answer : answers) {
                                assertThat(answer.get()[0]).isEqualTo(KvFormat.OK);
                            }
                        }
                    }
                    return null;
                });
            }
            for (Future<Void> done : both.invokeAll(clients)) {
                done.get();
            }
            try (KvConnection client = new KvConnection("soft", HOST, server.port())) {
                assertThat(client.counters().keys()).isEqualTo(100);
                return client.counters().puts();
            }
        }
    }

    @Test
    void agreesWithAMapWhateverIsPut() throws InterruptedException {
        long seed = System.nanoTime();
        Random random = new Random(seed);
        Map<String, String> expected = new HashMap<>();
        try (KvServer.Service server = server(SMALL);
                KvConnection client = connect(server)) {
            for (int i = 0; i < 1000; i++) {
                String key = "key " + random.nextInt(40);
                if (random.nextBoolean()) {
                    String value = "x".repeat(random.nextInt(1000)) + i;
                    value = value.substring(Math.max(0, value.length() - 1000));
                    client.put(bytes(key), bytes(value), 0);
                    expected.put(key, value);
                } else {
                    assertThat(get(client, key)).as("seed %d", seed).isEqualTo(Optional.ofNullable(expected.get(key)));
                }
            }
            Map<String, String> listed = new HashMap<>();
            client.list(item -> listed.put(item.keyText(), item.text()));
            assertThat(listed).as("seed %d", seed).isEqualTo(expected);
            assertThat(client.counters().keys()).isEqualTo(expected.size());
        }
    }

    @Test
    void theServerHasNoPartInGets() throws InterruptedException {
        try (KvServer.Service server = server(SMALL);
                KvConnection client = connect(server)) {
            client.put(bytes("a"), bytes("1"), 0);
            long before = client.counters().requests();
            for (int i = 0; i < 100; i++) {
                assertThat(get(client, "a")).contains("1");
            }
            KvConnection.Lock lock = client.lock(bytes("a"), 1000, 0);
            assertThat(lock.release()).isTrue();
            client.list(item -> assertThat(item.text()).isEqualTo("1"));
            assertThat(client.counters().requests()).as("this question alone").isEqualTo(before + 1);
        }
    }

    @Test
    void readersOfChangingValuesSeeWholeOnes() throws Exception {
        KvFormat.Geometry geometry = KvFormat.Geometry.of(4, 100_000);
        AtomicBoolean over = new AtomicBoolean();
        try (KvServer.Service server = server(geometry);
                KvConnection writer = connect(server);
                KvConnection reader = connect(server);
                ExecutorService executor = Executors.newSingleThreadExecutor()) {
            writer.put(bytes("a"), new byte[1], 0);
            Future<Integer> puts = executor.submit(() -> {
                Random random = new Random(1);
                int count = 0;
                while (!over.get()) {
                    byte[] value = new byte[1 + random.nextInt(100_000 - 1)];
                    Arrays.fill(value, (byte) count++);
                    writer.put(bytes("a"), value, 0);
                }
                return count;
            });
            try {
                long version = 0;
                int changes = 0;
                long endNanos = System.nanoTime() + TimeUnit.SECONDS.toNanos(3);
                while (System.nanoTime() < endNanos) {
                    KvFormat.Item item =
                            KvConnection.await(reader.get(bytes("a"))).orElseThrow();
                    byte[] value = item.value();
                    for (byte b : value) {
                        if (b != value[0]) {
                            throw new AssertionError("version " + item.version() + " has bytes of two values");
                        }
                    }
                    assertThat(item.version()).isGreaterThanOrEqualTo(version);
                    changes += item.version() > version ? 1 : 0;
                    version = item.version();
                }
                assertThat(changes).as("values that were seen").isGreaterThan(10);
            } finally {
                over.set(true);
            }
            assertThat(puts.get()).isGreaterThan(10);
        }
    }

    @Test
    void readsAgainUntilAPutIsDone() throws Exception {
        try (KvServer.Service server = server(SMALL);
                KvConnection client = connect(server);
                ExecutorService executor = Executors.newSingleThreadExecutor()) {
            client.put(bytes("a"), bytes("first"), 0);
            MemorySegment entry = entryOf(server, "a");
            long version = entry.get(ValueLayout.JAVA_LONG, 0);
            entry.set(ValueLayout.JAVA_LONG, 0, version + 1); // as if in the middle of a put
            Future<?> later = executor.submit(() -> {
                while (client.tornReads() == 0) {
                    Thread.onSpinWait();
                }
                entry.set(ValueLayout.JAVA_LONG, 0, version);
                return null;
            });
            assertThat(get(client, "a")).contains("first");
            later.get();
            assertThat(client.tornReads()).isPositive();
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 8, 16, 24, 28})
    void ignoresAnEntryThatIsNotWhole(int offset) throws Exception {
        try (KvServer.Service server = server(SMALL);
                KvConnection client = connect(server)) {
            client.put(bytes("a"), bytes("first"), 0);
            MemorySegment entry = entryOf(server, "a");
            byte whole = entry.get(ValueLayout.JAVA_BYTE, offset);
            entry.set(ValueLayout.JAVA_BYTE, offset, (byte) (whole ^ 2));
            assertThatExceptionOfType(CommandFailure.class)
                    .isThrownBy(() -> get(client, "a"))
                    .withMessageContaining("torn " + KvFormat.MAX_TRIES + " times");
            assertThat(client.tornReads()).isEqualTo(KvFormat.MAX_TRIES);
            entry.set(ValueLayout.JAVA_BYTE, offset, whole);
            assertThat(get(client, "a")).contains("first");
        }
    }

    @Test
    void ignoresARecordOfTwoPuts() throws Exception {
        try (KvServer.Service server = server(SMALL);
                KvConnection client = connect(server)) {
            client.put(bytes("a"), bytes("first value"), 0);
            long offset = entryOf(server, "a").get(ValueLayout.JAVA_LONG, 16);
            MemorySegment record = server.store().data().asSlice(offset, SMALL.recordBytes());
            byte[] before = record.asSlice(0, 40).toArray(ValueLayout.JAVA_BYTE);
            for (int i = 0; i < 8 + 4 + 4 + 1 + 11 + 4; i++) {
                record.set(ValueLayout.JAVA_BYTE, i, (byte) ~before[i]);
                assertThatExceptionOfType(CommandFailure.class)
                        .as("byte %d", i)
                        .isThrownBy(() -> get(client, "a"))
                        .withMessageContaining("torn");
                record.set(ValueLayout.JAVA_BYTE, i, before[i]);
            }
            assertThat(get(client, "a")).contains("first value");
        }
    }

    @Test
    void distinguishesTornEntriesFromEmptyOnes() {
        ByteBuf memory = Unpooled.buffer(KvFormat.ENTRY_BYTES).writeZero(KvFormat.ENTRY_BYTES);
        assertThat(KvFormat.Entry.read(memory, 0)).isEqualTo(KvFormat.Entry.EMPTY);
        KvFormat.Entry entry = new KvFormat.Entry(4, 5, 600, 70);
        ByteBuffer written = ByteBuffer.allocate(KvFormat.ENTRY_BYTES);
        entry.write(written);
        for (int part = 1; part < KvFormat.ENTRY_BYTES; part++) {
            memory.setZero(0, KvFormat.ENTRY_BYTES).setBytes(0, written.array(), 0, part);
            if (memory.compareTo(Unpooled.wrappedBuffer(written.array())) != 0) {
                assertThat(KvFormat.Entry.read(memory, 0))
                        .as("the first %d bytes", part)
                        .isNull();
            }
        }
        memory.setBytes(0, written.array());
        assertThat(KvFormat.Entry.read(memory, 0)).isEqualTo(entry);
    }

    private static MemorySegment entryOf(KvServer.Service server, String key) {
        int entry = SMALL.firstEntryOf(KvFormat.hash(bytes(key)));
        return server.store().data().asSlice(KvFormat.Geometry.entryOffset(entry), KvFormat.ENTRY_BYTES);
    }

    @Test
    void refusesValuesThatDoNotFit() throws InterruptedException {
        try (KvServer.Service server = server(KvFormat.Geometry.of(1, 10));
                KvConnection client = connect(server)) {
            byte[] longest = new byte[server.store().geometry().maxValueBytes(1)];
            client.put(bytes("a"), longest, 0);
            assertThat(KvConnection.await(client.get(bytes("a"))).orElseThrow().value())
                    .isEqualTo(longest);
            assertThatExceptionOfType(CommandFailure.class)
                    .isThrownBy(() -> client.put(bytes("a"), new byte[longest.length + 1], 0))
                    .withMessageContaining("--value-size");
            for (int i = 1; i < KvFormat.WINDOW; i++) {
                client.put(bytes("b" + i), bytes("x"), 0);
            }
            assertThatExceptionOfType(CommandFailure.class)
                    .isThrownBy(() -> client.put(bytes("one too many"), bytes("x"), 0))
                    .withMessageContaining("--slots");
            client.put(bytes("b3"), bytes("y"), 0);
            assertThat(get(client, "b3")).contains("y");
            assertThat(get(client, "one too many")).isEmpty();
        }
    }

    @Test
    void oneClientAtATimeHasTheLock() throws Exception {
        int each = 40;
        try (KvServer.Service server = server(SMALL);
                KvConnection client = connect(server);
                ExecutorService executor = Executors.newFixedThreadPool(2)) {
            client.put(bytes("n"), bytes("0"), 0);
            Callable<Answer> increment = () -> run(server.port(), "increment", "n", "--times", "" + each);
            List<Future<Answer>> both = List.of(executor.submit(increment), executor.submit(increment));
            for (Future<Answer> one : both) {
                assertThat(one.get().exitCode()).as(one.get().err()).isZero();
                assertThat(one.get().out().lines()).hasSize(each);
            }
            assertThat(get(client, "n")).contains("" + 2 * each);
        }
    }

    @Test
    void aLockKeepsOthersFromChangingTheValue() throws Exception {
        try (KvServer.Service server = server(SMALL);
                KvConnection holder = connect(server);
                KvConnection other = connect(server)) {
            holder.put(bytes("a"), bytes("1"), 0);
            KvConnection.Lock lock = holder.lock(bytes("a"), 20_000, 0);
            assertThat(lock.leftMillis()).isBetween(1L, 20_000L);
            assertThatExceptionOfType(CommandFailure.class)
                    .isThrownBy(() -> other.lock(bytes("a"), 1000, 50))
                    .withMessageContaining("owner " + holder.owner());
            assertThatExceptionOfType(CommandFailure.class)
                    .isThrownBy(() -> other.put(bytes("a"), bytes("2"), 0))
                    .withMessageContaining("locked by owner " + holder.owner());
            assertThat(get(other, "a")).as("gets are always allowed").contains("1");
            lock.renew();
            holder.put(bytes("a"), bytes("3"), lock.word());
            long word = lock.word();
            assertThat(lock.release()).isTrue();
            assertThatExceptionOfType(CommandFailure.class)
                    .isThrownBy(() -> holder.put(bytes("a"), bytes("4"), word))
                    .withMessageContaining("has expired");
            assertThat(other.lock(bytes("a"), 1000, 0).release()).isTrue();
            assertThat(get(other, "a")).contains("3");
        }
    }

    @Test
    void aLockWhoseHolderIsGoneIsFreeAfterItsTime() throws Exception {
        try (KvServer.Service server = server(SMALL);
                KvConnection client = connect(server)) {
            KvConnection.Lock lost;
            try (KvConnection dying = connect(server)) {
                dying.put(bytes("a"), bytes("1"), 0);
                lost = dying.lock(bytes("a"), 700, 0);
            }
            assertThatExceptionOfType(CommandFailure.class)
                    .isThrownBy(() -> client.lock(bytes("a"), 1000, 0))
                    .withMessageContaining("unless it renews it");
            KvConnection.Lock lock = client.lock(bytes("a"), 5000, 10_000);
            assertThat(lost.leftMillis())
                    .as("what the first could be certain of")
                    .isLessThanOrEqualTo(0);
            assertThatExceptionOfType(CommandFailure.class)
                    .isThrownBy(() -> client.put(bytes("a"), bytes("2"), lost.word()))
                    .withMessageContaining("owner " + client.owner() + " has it now");
            client.put(bytes("a"), bytes("3"), lock.word());
        }
    }

    @Test
    void theClockRunsNoFasterThanTimeWhateverTheServerDoes() throws Exception {
        try (KvStore store = new KvStore(SMALL)) {
            Random random = new Random(1);
            List<long[]> seen = new ArrayList<>();
            for (int i = 0; i < 100; i++) {
                TimeUnit.MILLISECONDS.sleep(random.nextInt(10) == 0 ? 60 : random.nextInt(5));
                seen.add(
                        new long[] {System.nanoTime(), store.data().get(ValueLayout.JAVA_LONG, KvFormat.CLOCK_OFFSET)});
                store.tick();
                seen.add(
                        new long[] {System.nanoTime(), store.data().get(ValueLayout.JAVA_LONG, KvFormat.CLOCK_OFFSET)});
            }
            for (long[] earlier : seen) {
                for (long[] later : seen) {
                    if (later[0] > earlier[0]) {
                        assertThat(TimeUnit.MILLISECONDS.toNanos(later[1] - earlier[1]))
                                .isBetween(
                                        0L,
                                        later[0]
                                                - earlier[0]
                                                + TimeUnit.MILLISECONDS.toNanos(KvFormat.CLOCK_LEAD_MILLIS));
                    }
                }
            }
            long[] last = seen.getLast();
            assertThat(last[1]).as("it does run").isGreaterThan(seen.getFirst()[1] + 100);
        }
    }

    @Test
    void aHolderThatWasTooSlowLearnsOfIt() throws Exception {
        try (KvServer.Service server = server(SMALL);
                KvConnection slow = connect(server);
                KvConnection fast = connect(server)) {
            slow.put(bytes("a"), bytes("1"), 0);
            KvConnection.Lock late = slow.lock(bytes("a"), 200, 0);
            KvConnection.Lock lock = fast.lock(bytes("a"), 20_000, 10_000);
            assertThatExceptionOfType(CommandFailure.class)
                    .isThrownBy(late::renew)
                    .withMessageContaining("another client has it");
            assertThat(late.release()).isFalse();
            assertThat(lock.release()).isTrue();
        }
    }

    @Test
    void theCommandsWorkBetweenProcesses() throws Exception {
        try (ServerProcess server = new ServerProcess("kv-server", "--provider", "soft", "--port", "0")) {
            int port = server.port;
            assertThat(run(port, "get", "colour").err()).contains("there is no key colour");
            assertThat(run(port, "put", "colour", "grün").exitCode()).isZero();
            assertThat(run(port, "get", "colour").out()).isEqualToNormalizingNewlines("grün\n");
            assertThat(run(port, "list").out()).isEqualToNormalizingNewlines("colour\t1\tgrün\n");
            assertThat(run(port, "lock", "colour", "--hold", "300", "--lease", "100")
                            .out())
                    .containsPattern("locked colour as owner \\d+ after \\d+ ms\\Rreleased colour");
            assertThat(run(port, "bench", "--count", "500", "--size", "100").out())
                    .contains("get 100 B x8", "requests that the server's program served during the gets: 0");
            assertThat(run(port, "counters").out()).contains("puts among them 101, keys 101");
            assertThat(run(port, "increment", "colour").err()).contains("'grün', which is not a number to increment");
            assertThat(run(port, "lock", "no such key").err()).contains("put it first");
            server.stop();
        }
    }

    @Test
    void aKilledHoldersLockIsFreeAfterItsTime() throws Exception {
        try (KvServer.Service server = server(SMALL);
                KvConnection client = connect(server)) {
            client.put(bytes("a"), bytes("1"), 0);
            Process holder = new ProcessBuilder(ServerProcess.commandLine(
                            "kv-client",
                            "lock",
                            "a",
                            "--hold",
                            "60000",
                            "--lease",
                            "1500",
                            "--provider",
                            "soft",
                            "--port",
                            "" + server.port()))
                    .redirectError(ProcessBuilder.Redirect.INHERIT)
                    .start();
            try {
                assertThat(holder.inputReader().readLine()).startsWith("locked a as owner ");
                assertThatExceptionOfType(CommandFailure.class)
                        .as("it is renewed")
                        .isThrownBy(() -> client.lock(bytes("a"), 1000, 2500))
                        .withMessageContaining("unless it renews it");
            } finally {
                holder.destroyForcibly().waitFor();
            }
            assertThat(client.lock(bytes("a"), 1000, 10_000).release()).isTrue();
        }
    }

    @Test
    void exitCodesTellWrongUsageFromFailure() {
        assertThat(run(1, "get", "a").exitCode()).isEqualTo(1);
        assertThat(run(1, "get").exitCode()).isEqualTo(2);
        assertThat(run(1).exitCode()).isEqualTo(2);
        assertThat(run(1, "lock", "a", "--lease", "1").exitCode()).isEqualTo(2);
        assertThat(run(1, "bench", "--count", "0").exitCode()).isEqualTo(2);
        assertThat(Samples.commandLine("kv-server")
                        .setErr(new PrintWriter(PrintWriter.nullWriter()))
                        .execute("kv-server", "--slots", "0"))
                .isEqualTo(2);
    }
}
