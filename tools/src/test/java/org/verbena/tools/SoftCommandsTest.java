package org.verbena.tools;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.Gson;
import com.google.gson.reflect.TypeToken;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.samples.ServerProcess;
import org.verbena.tools.interop.rping.Rping;

/** Commands of which both ends run on soft, on this machine. */
@Timeout(240)
class SoftCommandsTest {
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
        assertThat(run("demo", "--provider", "soft", "--millis", "50"))
                .contains("Verbena on soft", "echo 1 MiB", "read 4 KiB", "write 4 KiB", "fetch-and-add");
    }

    @Test
    void theDemoPrintsFiguresAsJson() throws Exception {
        Map<String, Object> answer = json(run("demo", "--json", "--provider", "soft", "--millis", "5"));
        assertThat(answer.get("provider")).isEqualTo("soft");
        List<Object> operations = ((List<?>) answer.get("operations"))
                .stream().<Object>map(row -> ((Map<?, ?>) row).get("operation")).toList();
        assertThat(operations).startsWith("echo 64 B").contains("read 4 KiB", "fetch-and-add");
    }

    /** As a strict reader understands it. */
    private static Map<String, Object> json(String text) throws IOException {
        return new Gson().getAdapter(new TypeToken<Map<String, Object>>() {}).fromJson(text);
    }

    @Test
    void rpingRunsOnChannels() throws Exception {
        try (ServerProcess server = VerbenaProcess.startServer(
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
        try (ServerProcess server = VerbenaProcess.startServer(
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
}
