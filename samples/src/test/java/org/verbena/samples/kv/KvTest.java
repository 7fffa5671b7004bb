package org.verbena.samples.kv;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.io.PrintWriter;
import java.io.StringWriter;
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
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.RdmaClient;
import org.verbena.api.RdmaServer;
import org.verbena.samples.Samples;
import org.verbena.samples.ServerProcess;
import org.verbena.samples.command.CommandFailure;
import picocli.CommandLine;

/** The key-value server and its clients on the soft provider: values that are whole, whatever happens meanwhile. */
@Timeout(240)
class KvTest {
    private static final String HOST = "127.0.0.1";

    /** Enough that the loops of both providers are busy at the same time. */
    private static final int AT_ONCE = 1000;

    private final KvStore store = new KvStore(KvFormat.Geometry.of(64, 1000));

    /** What a command answered. */
    private record Answer(int exitCode, String out, String err) {}

    private static RdmaServer serve(String provider, KvStore store) {
        return RdmaServer.builder().provider(provider).threadsPerProvider(2).bind(HOST, 0, KvServer.handler(store));
    }

    private static KvConnection connect(RdmaServer server) throws InterruptedException {
        return new KvConnection("soft", HOST, server.port());
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static void put(KvConnection client, String key, String value) throws InterruptedException {
        client.put(bytes(key), bytes(value));
    }

    private static Optional<String> get(KvConnection client, String key) throws InterruptedException {
        return client.get(bytes(key)).map(value -> new String(value, StandardCharsets.UTF_8));
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
        try (RdmaServer server = serve("soft", store);
                KvConnection client = connect(server);
                KvConnection other = connect(server)) {
            assertThat(get(client, "a")).isEmpty();
            put(client, "a", "1");
            assertThat(get(client, "a")).contains("1");
            put(client, "a", "22");
            assertThat(get(other, "a")).contains("22");
            put(other, "a", "");
            assertThat(get(client, "a")).contains("");
            put(other, "grüße 🌿", "日本語");
            assertThat(get(client, "grüße 🌿")).contains("日本語");
        }
    }

    /** Each provider has loops, and so threads, of its own. */
    @Test
    void losesNoPutOfAnyProvider() throws Exception {
        int keys = 500;
        KvStore large = new KvStore(KvFormat.Geometry.of(16_384, 16));
        try (RdmaServer server = serve("shm+soft", large);
                ExecutorService both = Executors.newFixedThreadPool(2)) {
            List<Callable<Void>> clients = new ArrayList<>();
            for (String provider : List.of("shm", "soft")) {
                clients.add(() -> {
                    try (RdmaClient client =
                            RdmaClient.builder().provider(provider).connect(HOST, server.port())) {
                        for (int round = 0; round < 4; round++) {
                            List<CompletableFuture<byte[]>> answers = new ArrayList<>();
                            for (int i = 0; i < AT_ONCE; i++) {
                                String key = provider + i % keys;
                                ByteBuffer put = ByteBuffer.allocate(2 + key.length() + 1);
                                put.put(KvFormat.PUT).put((byte) key.length()).put(bytes(key));
                                answers.add(client.request(put.put((byte) round).array()));
                            }
                            for (CompletableFuture<byte[]> answer : answers) {
                                assertThat(answer.get()).containsExactly(KvFormat.OK);
                            }
                        }
                    }
                    return null;
                });
            }
            for (Future<Void> done : both.invokeAll(clients)) {
                done.get();
            }
            try (KvConnection client = connect(server)) {
                for (String provider : List.of("shm", "soft")) {
                    for (int i = 0; i < keys; i++) {
                        assertThat(client.get(bytes(provider + i)))
                                .hasValueSatisfying(value -> assertThat(value).containsExactly(3));
                    }
                }
                assertThat(client.requestsServed()).isEqualTo(2L * 4 * AT_ONCE + 2);
            }
        }
    }

    @Test
    void agreesWithAMapWhateverIsPut() throws InterruptedException {
        long seed = System.nanoTime();
        Random random = new Random(seed);
        Map<String, String> expected = new HashMap<>();
        try (RdmaServer server = serve("soft", store);
                KvConnection client = connect(server)) {
            for (int i = 0; i < 1000; i++) {
                String key = "key " + random.nextInt(40);
                if (random.nextBoolean()) {
                    String value = "x".repeat(random.nextInt(1000)) + i;
                    value = value.substring(Math.max(0, value.length() - 1000));
                    put(client, key, value);
                    expected.put(key, value);
                } else {
                    assertThat(get(client, key)).as("seed %d", seed).isEqualTo(Optional.ofNullable(expected.get(key)));
                }
            }
        }
    }

    @Test
    void theServerHasNoPartInGets() throws InterruptedException {
        try (RdmaServer server = serve("soft", store);
                KvConnection client = connect(server)) {
            put(client, "a", "1");
            long before = client.requestsServed();
            for (int i = 0; i < 100; i++) {
                assertThat(get(client, "a")).contains("1");
            }
            assertThat(client.requestsServed()).as("with this question").isEqualTo(before + 1);
        }
    }

    /** This thread changes a value while clients read it, as a loop does on behalf of other clients. */
    @Test
    void readersOfChangingValuesSeeWholeOnes() throws Exception {
        KvStore large = new KvStore(KvFormat.Geometry.of(4, 100_000));
        AtomicBoolean over = new AtomicBoolean();
        large.put(bytes("a"), new byte[1]);
        try (RdmaServer server = serve("soft", large);
                KvConnection reader = connect(server);
                ExecutorService executor = Executors.newSingleThreadExecutor()) {
            AtomicInteger gets = new AtomicInteger();
            Future<?> getting = executor.submit(() -> {
                while (!over.get()) {
                    byte[] value = reader.get(bytes("a")).orElseThrow();
                    for (byte b : value) {
                        if (b != value[0]) {
                            throw new AssertionError("bytes of two values");
                        }
                    }
                    gets.incrementAndGet();
                }
                return null;
            });
            Random random = new Random(1);
            for (int i = 0; gets.get() < 1000 && !getting.isDone(); i++) {
                byte[] value = new byte[1 + random.nextInt(100_000 - 1)];
                Arrays.fill(value, (byte) i);
                large.put(bytes("a"), value);
                // The next one at any moment of a get: with a put all the time, none would be whole.
                int before = gets.get();
                while (gets.get() == before && !getting.isDone()) {
                    Thread.onSpinWait();
                }
                for (int spins = random.nextInt(3000); spins > 0; spins--) {
                    Thread.onSpinWait();
                }
            }
            over.set(true);
            getting.get();
        }
    }

    @Test
    void ignoresARecordOfTwoPuts() throws Exception {
        try (RdmaServer server = serve("soft", store);
                KvConnection client = connect(server)) {
            put(client, "a", "first value");
            ByteBuffer slot = store.slot(bytes("a"), 0);
            for (int i = 0; i < 4 + 4 + 1 + 11 + 4; i++) {
                byte whole = slot.get(i);
                slot.put(i, (byte) ~whole);
                assertThatExceptionOfType(CommandFailure.class)
                        .as("byte %d", i)
                        .isThrownBy(() -> get(client, "a"))
                        .withMessageContaining("torn " + KvConnection.MAX_TRIES + " times");
                slot.put(i, whole);
            }
            assertThat(get(client, "a")).contains("first value");
        }
    }

    @Test
    void refusesValuesThatDoNotFit() throws InterruptedException {
        KvStore small = new KvStore(KvFormat.Geometry.of(1, 10));
        try (RdmaServer server = serve("soft", small);
                KvConnection client = connect(server)) {
            byte[] longest = new byte[small.geometry().maxValueBytes(1)];
            client.put(bytes("a"), longest);
            assertThat(client.get(bytes("a")).orElseThrow()).isEqualTo(longest);
            assertThatExceptionOfType(CommandFailure.class)
                    .isThrownBy(() -> client.put(bytes("a"), new byte[longest.length + 1]))
                    .withMessageContaining("--value-size");
            for (int i = 1; i < KvFormat.PROBES; i++) {
                put(client, "b" + i, "x");
            }
            assertThatExceptionOfType(CommandFailure.class)
                    .isThrownBy(() -> put(client, "one too many", "x"))
                    .withMessageContaining("--slots");
            put(client, "b3", "y");
            assertThat(get(client, "b3")).contains("y");
            assertThat(get(client, "one too many")).isEmpty();
        }
    }

    @Test
    void refusesRequestsThatAreWrong() throws Exception {
        try (RdmaServer server = serve("soft", store);
                RdmaClient client = RdmaClient.builder().provider("soft").connect(HOST, server.port())) {
            for (byte[] request :
                    List.of(new byte[] {1}, new byte[] {KvFormat.PUT, 0}, new byte[] {KvFormat.PUT, 9, 1})) {
                assertThat(client.request(request).get()).startsWith(KvFormat.FAILED);
            }
        }
    }

    @Test
    void theCommandsWorkBetweenProcesses() throws Exception {
        try (ServerProcess server = new ServerProcess("kv-server", "--provider", "soft", "--port", "0")) {
            int port = server.port;
            assertThat(run(port, "get", "colour").err()).contains("there is no key colour");
            assertThat(run(port, "put", "colour", "grün").exitCode()).isZero();
            assertThat(run(port, "get", "colour").out()).isEqualToNormalizingNewlines("grün\n");
            assertThat(run(port, "put", "", "x").err()).contains("a key has 1 to 255 bytes");
            assertThat(run(port, "bench", "--count", "500", "--size", "100").out())
                    .contains("get 100 B", "requests that the server's program served during the gets: 0");
            server.stop();
        }
    }

    @Test
    void exitCodesTellWrongUsageFromFailure() {
        assertThat(run(1, "get", "a").exitCode()).isEqualTo(1);
        assertThat(run(1, "get").exitCode()).isEqualTo(2);
        assertThat(run(1).exitCode()).isEqualTo(2);
        assertThat(run(1, "bench", "--count", "0").exitCode()).isEqualTo(2);
        assertThat(Samples.commandLine("kv-server")
                        .setErr(new PrintWriter(PrintWriter.nullWriter()))
                        .execute("kv-server", "--slots", "0"))
                .isEqualTo(2);
    }
}
