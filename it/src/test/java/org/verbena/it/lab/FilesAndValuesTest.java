package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.verbena.samples.Main;
import org.verbena.transport.spi.Patience;

/** The samples that copy files and keep values, on verbs over each device; each server in a process of its own. */
@Tag("lab")
@Tag("lab-long")
@Timeout(350)
class FilesAndValuesTest {
    private static final AtomicInteger NEXT_PORT = new AtomicInteger(7650);
    private static final String LISTENS = "listens on .*\\(verbs\\)";

    @TempDir
    Path directory;

    /** What a command answered; standard error is among it. */
    private record Answer(int exitCode, String said) {}

    private static PeerProgram server(LabDevice device, int port, String... command) {
        PeerProgram server = PeerProgram.startJava(Main.class.getName(), on(device, port, command));
        server.awaitLine(LISTENS, Duration.ofSeconds(60));
        return server;
    }

    private static String[] on(LabDevice device, int port, String... command) {
        List<String> all = new ArrayList<>(List.of(command));
        all.addAll(List.of("--provider", "verbs", "--host", device.address(), "--port", "" + port));
        return all.toArray(String[]::new);
    }

    private static Answer run(LabDevice device, int port, String... command) {
        PrintStream out = System.out;
        PrintStream err = System.err;
        ByteArrayOutputStream said = new ByteArrayOutputStream();
        PrintStream both = new PrintStream(said, true, StandardCharsets.UTF_8);
        System.setOut(both);
        System.setErr(both);
        int exitCode;
        try {
            exitCode = Main.run(on(device, port, command));
        } finally {
            System.setOut(out);
            System.setErr(err);
        }
        String text = said.toString(StandardCharsets.UTF_8);
        out.print(text);
        return new Answer(exitCode, text);
    }

    private Path file(String name, int bytes) throws IOException {
        byte[] content = new byte[bytes];
        new Random(bytes).nextBytes(content);
        return Files.write(directory.resolve(name), content);
    }

    @ParameterizedTest
    @EnumSource
    void filesArriveAlsoAfterTheReceiverWasKilled(LabDevice device) throws Exception {
        int port = NEXT_PORT.incrementAndGet();
        Path out = Files.createDirectory(directory.resolve("out"));
        Path small = file("small", 1_500_001);
        Path empty = file("empty", 0);
        Path large = file("large", 5 << 20);
        Path part = out.resolve("large.part");
        try (PeerProgram receiver = server(device, port, "recv-file", "--out", out.toString())) {
            Answer sent = run(device, port, "send-file", "--no-progress", small.toString(), empty.toString());
            assertThat(sent.exitCode()).as(sent.said()).isZero();
            FutureTask<Answer> sending = new FutureTask<>(() -> run(
                    device, port, "send-file", "--no-progress", "--size", "64k", "--window", "1", large.toString()));
            Thread.ofPlatform().daemon().name("send-file").start(sending);
            Patience.until(
                    "some of it is there",
                    () -> sending.isDone()
                            || (Files.exists(part) && part.toFile().length() > 1 << 20));
            receiver.process().destroyForcibly().waitFor();
            Answer broken = sending.get(60, TimeUnit.SECONDS);
            assertThat(broken.exitCode()).as(broken.said()).isEqualTo(1);
            assertThat(broken.said()).contains("interrupted at ");
        }
        assertThat(part).exists();
        try (PeerProgram receiver = server(device, port, "recv-file", "--out", out.toString())) {
            Answer sent = run(device, port, "send-file", "--no-progress", large.toString());
            assertThat(sent.exitCode()).as(sent.said()).isZero();
            assertThat(sent.said()).contains("resumed at ");
            receiver.awaitLine("received .*resumed at ", Patience.LIMIT);
        }
        for (Path file : List.of(small, empty, large)) {
            assertThat(Files.mismatch(file, out.resolve(file.getFileName())))
                    .as("%s", file)
                    .isEqualTo(-1);
        }
    }

    @ParameterizedTest
    @EnumSource
    void valuesAreReadWithoutTheServer(LabDevice device) {
        int port = NEXT_PORT.incrementAndGet();
        try (PeerProgram server = server(device, port, "kv-server")) {
            assertThat(run(device, port, "kv-client", "put", "n", "41").exitCode())
                    .isZero();
            assertThat(run(device, port, "kv-client", "get", "n").said()).contains("41");
            Answer bench = run(device, port, "kv-client", "bench", "--count", "300", "--keys", "20", "--size", "200");
            assertThat(bench.exitCode()).as(bench.said()).isZero();
            assertThat(bench.said())
                    .containsPattern("get 200 B x8 +300 ")
                    .contains("requests that the server's program served during the gets: 0");
            Answer counted = run(device, port, "kv-client", "increment", "n");
            if (device == LabDevice.RXE) {
                assertThat(counted.exitCode()).as(counted.said()).isZero();
                assertThat(run(device, port, "kv-client", "get", "n").said()).contains("42");
                Answer locked = run(device, port, "kv-client", "lock", "n", "--hold", "300", "--lease", "1000");
                assertThat(locked.said()).contains("locked n as owner", "released n");
            } else {
                assertThat(counted.exitCode()).isEqualTo(1);
                assertThat(counted.said()).contains("locks need compare-and-swap", "has no atomics");
            }
            server.terminate();
            assertThat(server.awaitExit(Patience.LIMIT)).isZero();
        }
    }
}
