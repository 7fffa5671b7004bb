package org.verbena.samples;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.verbena.samples.rping.Rping;

/** The commands on the Channel API, each server in a process of its own, on the soft provider. */
@Timeout(120)
class ChannelSamplesTest {
    private static String run(String... command) {
        PrintStream before = System.out;
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
        try {
            assertThat(Main.run(command)).as("exit code").isZero();
        } finally {
            System.setOut(before);
        }
        return out.toString(StandardCharsets.UTF_8);
    }

    @Test
    void theDemoRunsByItself() {
        assertThat(run("demo", "--provider", "soft"))
                .contains("Verbena on soft", "echo 1 MiB", "read 4 KiB", "write 4 KiB", "fetch-and-add");
    }

    @ParameterizedTest
    @CsvSource({"echo-server, echo-client", "netty-echo-server, netty-echo-client"})
    void echoesBetweenProcesses(String serverCommand, String clientCommand) throws Exception {
        try (ServerProcess server = new ServerProcess(serverCommand, "--provider", "soft", "--port", "0")) {
            String port = String.valueOf(server.port);
            assertThat(run(
                            clientCommand,
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

    @Test
    void rpingRunsOnChannels() throws Exception {
        try (ServerProcess server = new ServerProcess(
                "rping", "-s", "-v", "-a", "127.0.0.1", "-p", "0", "-S", "100", "--provider", "soft")) {
            String port = String.valueOf(server.port);
            String pings = run(
                    "rping",
                    "-c",
                    "-v",
                    "-V",
                    "-a",
                    "127.0.0.1",
                    "-p",
                    port,
                    "-C",
                    "20",
                    "-S",
                    "100",
                    "--provider",
                    "soft");
            assertThat(pings.lines()).hasSize(20).allMatch(line -> line.startsWith("ping data: rdma-ping-"));
            assertThat(pings).contains("rdma-ping-19: ");
            assertThat(server.awaitEnd()).hasSize(20).allMatch(line -> line.startsWith("server ping data: rdma-ping-"));
        }
    }

    @Test
    void rpingNoticesSizesThatDiffer() throws Exception {
        try (ServerProcess server = new ServerProcess(
                "rping", "-s", "-P", "-a", "127.0.0.1", "-p", "0", "-S", "50", "--provider", "soft")) {
            StringWriter err = new StringWriter();
            int code = new picocli.CommandLine(new Rping())
                    .setErr(new PrintWriter(err))
                    .setExecutionExceptionHandler((failure, command, parsed) -> {
                        command.getErr().println(failure.getMessage());
                        return 1;
                    })
                    .execute(
                            "-c",
                            "-a",
                            "127.0.0.1",
                            "-p",
                            String.valueOf(server.port),
                            "-C",
                            "1",
                            "-S",
                            "100",
                            "--provider",
                            "soft");
            assertThat(code).isEqualTo(1);
            assertThat(err.toString()).contains("disconnected");
            server.stop();
        }
    }

    @Test
    void saysThatNobodyListens() {
        assertThat(Main.run("echo-client", "--provider", "soft", "--port", "1", "--count", "1"))
                .isEqualTo(1);
    }
}
