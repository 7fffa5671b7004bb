package org.verbena.samples;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The gRPC and HTTP samples over both transports, each server in a process of its own. */
@Timeout(240)
class RpcSamplesTest {
    private static final Pattern PORT = Pattern.compile(":(\\d+) \\((\\w+)\\)");

    /** A server's process, which has said that it listens. */
    private static final class ServerProcess implements AutoCloseable {
        private final Process process;
        final String port;
        final String transport;

        ServerProcess(String command, String transport) throws IOException {
            List<String> all = new ArrayList<>(List.of(
                    Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                    "--enable-native-access=ALL-UNNAMED",
                    "--sun-misc-unsafe-memory-access=allow",
                    "-cp",
                    System.getProperty("java.class.path"),
                    Samples.class.getName()));
            all.addAll(List.of(command, "--provider", "soft", "--port", "0", "--transport", transport));
            process = new ProcessBuilder(all)
                    .redirectError(ProcessBuilder.Redirect.INHERIT)
                    .start();
            BufferedReader out = process.inputReader(StandardCharsets.UTF_8);
            String line = out.readLine();
            assertThat(line).as("the server's line").isNotNull().contains("listens on");
            Matcher match = PORT.matcher(line);
            assertThat(match.find()).as(line).isTrue();
            port = match.group(1);
            this.transport = match.group(2);
        }

        void stop() throws InterruptedException {
            process.destroy();
            assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
            assertThat(process.exitValue()).isZero();
        }

        @Override
        public void close() {
            process.destroyForcibly();
        }
    }

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

    @ParameterizedTest
    @CsvSource({"rdma, soft", "tcp, tcp"})
    void grpcGreetsAndStreams(String transport, String name) throws Exception {
        try (ServerProcess server = new ServerProcess("grpc-server", transport)) {
            assertThat(server.transport).isEqualTo(name);
            assertThat(run(
                            "grpc-client",
                            "--provider",
                            "soft",
                            "--port",
                            server.port,
                            "--transport",
                            transport,
                            "--name",
                            "Ada",
                            "--count",
                            "200"))
                    .contains("Hello Ada")
                    .containsPattern("greet over " + name + " +200 ")
                    .containsPattern("chat over " + name + " +200 ");
            server.stop();
        }
    }

    @ParameterizedTest
    @CsvSource({"rdma, soft", "tcp, tcp"})
    void httpAnswersInBothVersions(String transport, String name) throws Exception {
        try (ServerProcess server = new ServerProcess("http-server", transport)) {
            assertThat(server.transport).isEqualTo(name);
            for (boolean http2 : new boolean[] {true, false}) {
                List<String> command = new ArrayList<>(List.of(
                        "http-client",
                        "--provider",
                        "soft",
                        "--port",
                        server.port,
                        "--transport",
                        transport,
                        "--path",
                        "/some/path"));
                if (http2) {
                    command.add("--http2");
                }
                assertThat(run(command.toArray(String[]::new))).isEqualTo("Hello from /some/path\n");
            }
            server.stop();
        }
    }

    @Test
    void saysThatNobodyListens() {
        assertThat(Samples.run("grpc-client", "--provider", "soft", "--port", "1", "--count", "1"))
                .isEqualTo(1);
        assertThat(Samples.run("http-client", "--provider", "soft", "--port", "1"))
                .isEqualTo(1);
    }
}
