package org.verbena.samples;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.Gson;
import com.google.gson.reflect.TypeToken;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The commands on the Channel API, each server in a process of its own, on the soft provider. */
@Timeout(240)
class ChannelSamplesTest {
    private static String run(String... command) {
        PrintStream before = System.out;
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
        try {
            assertThat(Samples.run(command)).as("exit code").isZero();
        } finally {
            System.setOut(before);
        }
        return out.toString(StandardCharsets.UTF_8);
    }

    @Test
    void echoesBetweenProcesses() throws Exception {
        try (ServerProcess server = new ServerProcess("echo-server", "--provider", "soft", "--port", "0")) {
            String port = String.valueOf(server.port);
            assertThat(run(
                            "echo-client",
                            "--provider",
                            "soft",
                            "--port",
                            port,
                            "--count",
                            "500",
                            "--size",
                            "3k",
                            "--window",
                            "7"))
                    .contains("p99 us")
                    .containsPattern("echo 3072 B x7 +500 ");
            server.stop();
        }
    }

    @Test
    void aTableIsReadAndChanged() throws Exception {
        try (ServerProcess server =
                new ServerProcess("table-server", "--provider", "soft", "--port", "0", "--rows", "100")) {
            String port = String.valueOf(server.port);
            String first = run("table-client", "--provider", "soft", "--port", port, "--count", "300");
            assertThat(first)
                    .contains("100 rows of 64 bytes")
                    .containsPattern("read 64 B x8 +300 ")
                    .contains("counter: 300");
            assertThat(run("table-client", "--provider", "soft", "--port", port, "--count", "200"))
                    .contains("counter: 500");
            server.stop();
        }
    }

    @ParameterizedTest
    @CsvSource({
        "echo-server, echo-client --count 20, echo 64 B x1",
        "table-server, table-client --count 20, read 64 B x8",
        "kv-server, kv-client bench --count 20, put 64 B",
        "grpc-server, grpc-client --count 20, greet over soft"
    })
    void printsFiguresAsJson(String serverCommand, String client, String operation) throws Exception {
        try (ServerProcess server = new ServerProcess(serverCommand, "--provider", "soft", "--port", "0")) {
            Map<String, Object> answer =
                    json(run((client + " --json --provider soft --port " + server.port).split(" ")));
            Map<?, ?> first = (Map<?, ?>) ((List<?>) answer.get("operations")).getFirst();
            assertThat(first.get("operation")).isEqualTo(operation);
            assertThat(number(first, "count")).isPositive();
            assertThat(number(first, "p99Micros")).isGreaterThanOrEqualTo(number(first, "p50Micros"));
            assertThat(number(first, "perSecond")).isPositive();
            server.stop();
        }
    }

    private static double number(Map<?, ?> of, String name) {
        return ((Number) of.get(name)).doubleValue();
    }

    /** As a strict reader understands it. */
    private static Map<String, Object> json(String text) throws IOException {
        return new Gson().getAdapter(new TypeToken<Map<String, Object>>() {}).fromJson(text);
    }

    @ParameterizedTest
    @ValueSource(strings = {"echo-server", "table-server", "recv-file --out %s", "kv-server"})
    void clientsDistinguishAWrongServerFromARefusal(String serverCommand, @TempDir Path directory) throws Exception {
        Path file = Files.writeString(directory.resolve("a.txt"), "abc");
        String command = serverCommand.formatted(directory.resolve("into")) + " --provider soft --port 0";
        try (ServerProcess server = new ServerProcess(command.split(" "))) {
            String to = " --provider soft --port " + server.port;
            if (!serverCommand.startsWith("kv-server")) {
                assertThat(complaintOf("kv-client get key" + to))
                        .contains("is it ")
                        .doesNotContain("refuse");
            }
            if (!serverCommand.startsWith("recv-file")) {
                assertThat(complaintOf("send-file " + file + to))
                        .contains("is it one?")
                        .doesNotContain("refuse");
            }
            server.stop();
        }
    }

    @Test
    void aReceiverCreatesItsFolderAndReportsFiles(@TempDir Path directory) throws Exception {
        Path file = Files.writeString(directory.resolve("a.txt"), "abc");
        Path into = directory.resolve("not/there");
        try (ServerProcess server =
                new ServerProcess("recv-file", "--out", into.toString(), "--provider", "soft", "--port", "0")) {
            String report = ", 3 bytes, SHA-256 ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
            assertThat(run("send-file", file.toString(), "--provider", "soft", "--port", "" + server.port))
                    .isEqualToNormalizingNewlines("sent " + file + report + "\n");
            assertThat(into.resolve("a.txt")).hasContent("abc");
            assertThat(server.readLine()).isEqualTo("received " + into.resolve("a.txt") + report);
            server.stop();
        }
        assertThat(complaintOf("recv-file --out " + file + " --provider soft --port 0"))
                .isEqualToIgnoringNewLines("recv-file: --out " + file + ": it is a file, not a directory");
    }

    /** What a command says that fails. */
    private static String complaintOf(String line) {
        StringWriter err = new StringWriter();
        String[] args = line.split(" ");
        assertThat(Samples.commandLine(args).setErr(new PrintWriter(err, true)).execute(args))
                .isEqualTo(1);
        assertThat(err.toString().lines()).hasSize(1);
        return err.toString();
    }

    @Test
    void theTableClientDoesNotPrintItsToken() throws Exception {
        try (ServerProcess server = new ServerProcess("table-server", "--provider", "soft", "--port", "0")) {
            assertThat(run("table-client", "--provider", "soft", "--port", "" + server.port, "--count", "5"))
                    .contains("table: ")
                    .doesNotContain("RemoteMemory", "0x");
            server.stop();
        }
    }

    @Test
    void saysThatNobodyListens() {
        assertThat(Samples.run("echo-client", "--provider", "soft", "--port", "1", "--count", "1"))
                .isEqualTo(1);
    }
}
