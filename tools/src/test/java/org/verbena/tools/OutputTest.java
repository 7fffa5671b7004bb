package org.verbena.tools;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.samples.ServerProcess;

/**
 * Where the commands print what: results to standard output, logs and complaints to standard error, and nothing that
 * nobody asked for.
 */
@Timeout(240)
class OutputTest {
    @TempDir
    Path directory;

    /** What a command's process left. */
    private record Answer(int exitCode, String out, String err) {}

    private Answer run(String... command) throws IOException, InterruptedException {
        Path out = directory.resolve("out");
        Path err = directory.resolve("err");
        Process process = new ProcessBuilder(VerbenaProcess.commandLine(command))
                .redirectOutput(out.toFile())
                .redirectError(err.toFile())
                .start();
        assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
        return new Answer(
                process.exitValue(),
                Files.readString(out, StandardCharsets.UTF_8),
                Files.readString(err, StandardCharsets.UTF_8));
    }

    @Test
    void isQuietUnlessAskedForDetails() throws Exception {
        try (ServerProcess server = VerbenaProcess.startServer("echo-server", "--provider", "soft", "--port", "0")) {
            List<String> command = new ArrayList<>(List.of(
                    "echo-client",
                    "--provider",
                    "soft",
                    "--port",
                    "" + server.port,
                    "--count",
                    "20",
                    "--size",
                    "10",
                    "--warm-up",
                    "0"));
            Answer quiet = run(command.toArray(String[]::new));
            assertThat(quiet.exitCode()).isZero();
            assertThat(quiet.out()).contains("echo 10 B x1 ", "provider soft");
            assertThat(quiet.err()).isEmpty();
            command.add("-v");
            Answer verbose = run(command.toArray(String[]::new));
            assertThat(verbose.exitCode()).isZero();
            assertThat(verbose.out()).contains("echo 10 B x1 ", "provider soft").doesNotContain("INFO", "DEBUG");
            assertThat(verbose.err()).contains("INFO", "soft");
            server.stop();
        }
    }

    /** A script must not take an empty file for success. */
    @ParameterizedTest
    @ValueSource(strings = {"--version", "--help", "stat --json", "completion"})
    void whatCannotBeWrittenIsAFailure(String command) throws Exception {
        for (String closed : new String[] {">/dev/full", ">&-"}) {
            List<String> line = new ArrayList<>(List.of("sh", "-c", "exec \"$@\" " + closed, "sh"));
            line.addAll(VerbenaProcess.commandLine(command.split(" ")));
            Path err = directory.resolve("err");
            Process process =
                    new ProcessBuilder(line).redirectError(err.toFile()).start();
            assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
            assertThat(process.exitValue()).as(closed).isEqualTo(1);
            assertThat(Files.readString(err)).contains("could not be written");
        }
    }

    /** The loopback address has no device. */
    @Test
    void showsTheLadder() throws Exception {
        try (ServerProcess server = VerbenaProcess.startServer("echo-server", "--provider", "soft", "--port", "0")) {
            Answer answer = run(
                    "echo-client",
                    "--provider",
                    "ladder",
                    "--port",
                    "" + server.port,
                    "--count",
                    "20",
                    "--warm-up",
                    "0",
                    "-v");
            assertThat(answer.exitCode()).as(answer.err()).isZero();
            assertThat(answer.err())
                    .containsPattern("(?m)^ladder to \\S*127.0.0.1:" + server.port + ":$")
                    .containsPattern("(?m)^  verbs  not tried: \\S+")
                    .containsPattern("(?m)^  soft   began after [0-9.]+ ms, took [0-9.]+ ms: up, and used$");
            assertThat(answer.out()).contains("ladder: soft, ", "verbs: ");
            server.stop();
        }
    }

    @Test
    void complainsInOneLineThatSaysWhereAndWhy() throws Exception {
        Answer nobody = run("echo-client", "--provider", "soft", "--port", "1", "--count", "1");
        assertThat(nobody.exitCode()).isEqualTo(1);
        assertThat(nobody.out()).isEmpty();
        assertThat(nobody.err().lines()).hasSize(1).first().asString().contains("127.0.0.1:1", "refused");
    }

    @Test
    void theDemoEndsByItselfAndComplainsOfNothing() throws Exception {
        Answer demo = run("demo", "--provider", "soft", "--millis", "50");
        assertThat(demo.exitCode()).as(demo.err()).isZero();
        assertThat(demo.err()).isEmpty();
        assertThat(demo.out()).contains("Every reply and row was checked");
    }
}
