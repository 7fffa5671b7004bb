package org.verbena.tools.stat;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.verbena.api.RdmaClient;
import org.verbena.api.RdmaServer;
import org.verbena.samples.ServerProcess;
import org.verbena.tools.Main;
import org.verbena.tools.VerbenaProcess;
import org.verbena.transport.stat.StatFile;
import picocli.CommandLine;

/** {@code verbena stat} of other processes, on the soft provider. */
@Timeout(240)
class StatTest {
    /** How long a figure may take to be as expected. */
    private static final long LIMIT_NANOS = TimeUnit.SECONDS.toNanos(120);

    @TempDir
    private Path runtime;

    private final List<AutoCloseable> started = new ArrayList<>();

    /** What a command answered. */
    private record Answer(int exitCode, String out, String err) {
        JsonObject process() {
            return JsonParser.parseString(out)
                    .getAsJsonObject()
                    .getAsJsonArray("processes")
                    .get(0)
                    .getAsJsonObject();
        }
    }

    @AfterEach
    void stop() throws Exception {
        for (AutoCloseable each : started) {
            each.close();
        }
    }

    private Path directory() {
        return runtime.resolve("verbena");
    }

    /** Another process's command line, with flags for its JVM. */
    private ProcessBuilder builder(List<String> flags, String... command) {
        List<String> line = VerbenaProcess.commandLine(command);
        line.addAll(1, flags);
        ProcessBuilder builder = new ProcessBuilder(line);
        builder.environment().put("XDG_RUNTIME_DIR", runtime.toString());
        return builder;
    }

    private ServerProcess echoServer(String... flags) throws IOException {
        ServerProcess server =
                new ServerProcess(builder(List.of(flags), "echo-server", "--provider", "soft", "--port", "0"));
        started.add(server);
        return server;
    }

    private Process echoClient(int port) throws IOException {
        Process client = builder(
                        List.of(),
                        "echo-client",
                        "--provider",
                        "soft",
                        "--port",
                        "" + port,
                        "--count",
                        "2000000000",
                        "--warm-up",
                        "0")
                .redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                .start();
        started.add(() -> client.destroyForcibly().waitFor());
        return client;
    }

    /** In this process, with the files of the others. */
    private Answer stat(String... arguments) {
        List<String> line =
                new ArrayList<>(List.of("stat", "--directory", directory().toString()));
        line.addAll(List.of(arguments));
        return run(line.toArray(String[]::new));
    }

    private static Answer run(String... line) {
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        CommandLine command =
                Main.commandLine(line).setOut(new PrintWriter(out)).setErr(new PrintWriter(err, true));
        int exitCode = command.execute(line);
        return new Answer(exitCode, out.toString(), err.toString());
    }

    /** In a process of its own, as a user calls it: what others have left is removed. */
    private Answer statOfUser(String... arguments) throws Exception {
        List<String> line = new ArrayList<>(List.of("stat"));
        line.addAll(List.of(arguments));
        Path out = runtime.resolve("out");
        Path err = runtime.resolve("err");
        Process process = builder(List.of(), line.toArray(String[]::new))
                .redirectOutput(out.toFile())
                .redirectError(err.toFile())
                .start();
        assertThat(process.waitFor(120, TimeUnit.SECONDS)).isTrue();
        return new Answer(process.exitValue(), Files.readString(out), Files.readString(err));
    }

    private List<String> files() throws IOException {
        if (!Files.exists(directory())) {
            return List.of();
        }
        try (Stream<Path> files = Files.list(directory())) {
            return files.map(file -> file.getFileName().toString()).sorted().toList();
        }
    }

    /** Asks until the answer is as expected, since figures follow what happens. */
    private static Answer until(java.util.function.Supplier<Answer> question, Predicate<Answer> expected) {
        long began = System.nanoTime();
        Answer answer = question.get();
        while (!expected.test(answer) && System.nanoTime() - began < LIMIT_NANOS) {
            answer = question.get();
        }
        return answer;
    }

    private static JsonObject connection(Answer answer) {
        return answer.process().getAsJsonArray("connections").get(0).getAsJsonObject();
    }

    private static boolean hasTraffic(Answer answer) {
        return answer.exitCode() == 0
                && !answer.process().getAsJsonArray("connections").isEmpty()
                && connection(answer).get("requestsPerSecond").getAsDouble() > 0
                && connection(answer).get("messagesSentPerSecond").getAsDouble() > 0;
    }

    private static String pidOf(List<String> files, String... others) {
        return files.stream()
                .filter(name -> !List.of(others).contains(name))
                .findFirst()
                .orElseThrow();
    }

    @Test
    void showsWhatAServerAndItsClientDo() throws Exception {
        ServerProcess server = echoServer();
        String serverPid = pidOf(files());
        assertThat(stat().out()).as("the only process").contains("PID " + serverPid + ": " + Main.class.getName());
        Process client = echoClient(server.port);
        String[] question = {serverPid, "--json", "--interval", "0.5"};
        // The window is what it is at a moment, and may be used up then.
        Predicate<Answer> hasWindow =
                answer -> hasTraffic(answer) && connection(answer).get("window").getAsLong() > 0;
        Answer atServer = until(() -> stat(question), hasWindow);
        assertThat(hasWindow.test(atServer)).as(atServer.out() + atServer.err()).isTrue();
        JsonObject connection = connection(atServer);
        assertThat(connection.get("peer").getAsString()).startsWith("127.0.0.1:");
        assertThat(connection.get("local").getAsString()).isEqualTo("127.0.0.1:" + server.port);
        assertThat(connection.get("provider").getAsString()).isEqualTo("soft");
        assertThat(connection.get("why").getAsString()).isEqualTo("requested by name");
        assertThat(connection.get("role").getAsString()).isEqualTo("ACCEPTOR");
        assertThat(connection.get("framing").getAsString()).isEqualTo("MESSAGE");
        assertThat(connection.get("phase").getAsString()).isEqualTo("ACTIVE");
        assertThat(connection.get("bytesReceivedPerSecond").getAsDouble()).isPositive();
        assertThat(connection.get("p50Micros").getAsDouble()).isPositive();
        assertThat(connection.get("p99Micros").getAsDouble())
                .isGreaterThanOrEqualTo(connection.get("p50Micros").getAsDouble());
        assertThat(connection.get("loop").getAsString()).startsWith("verbena-soft");
        assertThat(atServer.process().getAsJsonArray("loops").asList().stream()
                        .map(loop -> loop.getAsJsonObject().get("name").getAsString()))
                .contains(connection.get("loop").getAsString());
        JsonObject provider =
                atServer.process().getAsJsonArray("providers").get(0).getAsJsonObject();
        assertThat(provider.get("registeredBytes").getAsLong()).isPositive();

        Answer atClient = until(() -> stat("" + client.pid(), "--json", "--interval", "0.5"), StatTest::hasTraffic);
        assertThat(hasTraffic(atClient)).as(atClient.out() + atClient.err()).isTrue();
        assertThat(connection(atClient).get("role").getAsString()).isEqualTo("INITIATOR");
        assertThat(connection(atClient).get("p50Micros").getAsDouble()).isPositive();

        Answer page = stat(serverPid, "--interval", "0.2", "--watch", "--count", "2");
        assertThat(page.exitCode()).as(page.err()).isZero();
        assertThat(page.out())
                .contains("MiB registered", "soft: requested by name (connections: 1)", "ACTIVE")
                .containsPattern("provider soft \\(.*, on (io_uring|NIO( \\(io_uring: .*\\))?)\\):")
                .doesNotContain("\u001b");
        assertThat(page.out().lines().filter(line -> line.startsWith("PID "))).hasSize(2);

        Answer list = stat();
        assertThat(list.out().lines().map(line -> line.strip().split(" ")[0]))
                .containsExactlyInAnyOrder("PID", serverPid, "" + client.pid());
        assertThat(JsonParser.parseString(stat("--json").out())
                        .getAsJsonObject()
                        .getAsJsonArray("processes"))
                .hasSize(2);
    }

    @Test
    void aProcessThatWasKilledIsForgotten() throws Exception {
        ServerProcess server = echoServer();
        String killed = pidOf(files());
        server.kill();
        assertThat(files()).containsExactly(killed);
        Answer answer = statOfUser();
        assertThat(answer.exitCode()).isEqualTo(1);
        assertThat(answer.err())
                .contains("no process of yours uses Verbena", directory().toString());
        assertThat(files()).isEmpty();
        Answer json = stat("--json");
        assertThat(json.exitCode()).isZero();
        assertThat(JsonParser.parseString(json.out()).getAsJsonObject().getAsJsonArray("processes"))
                .isEmpty();
    }

    @Test
    void aProcessThatEndsTakesItsFileWithIt() throws Exception {
        ServerProcess server = echoServer();
        assertThat(files()).hasSize(1);
        server.stop();
        assertThat(files()).isEmpty();
    }

    @Test
    void aStoppedProcessIsShownWithItsLastFigures() throws Exception {
        ServerProcess server = echoServer();
        String pid = pidOf(files());
        echoClient(server.port);
        assertThat(hasTraffic(until(() -> stat(pid, "--json", "--interval", "0.5"), StatTest::hasTraffic)))
                .isTrue();
        signal("STOP", pid);
        try {
            Answer stopped = until(
                    () -> stat(pid, "--json", "--interval", "0.5"),
                    answer -> answer.process().get("stopped").getAsBoolean());
            assertThat(stopped.process().get("stopped").getAsBoolean()).isTrue();
            // Asked again, so that both readings are of a stopped process.
            JsonObject connection = connection(stat(pid, "--json", "--interval", "0.5"));
            assertThat(connection.get("messagesReceived").getAsLong()).isPositive();
            assertThat(connection.get("messagesReceivedPerSecond").getAsDouble())
                    .isZero();
            assertThat(connection.get("requests").getAsLong()).isPositive();
            assertThat(connection.get("p50Micros").getAsDouble()).isPositive();
            assertThat(stat(pid, "--interval", "0.1").out()).contains("STOPPED");
        } finally {
            signal("CONT", pid);
        }
    }

    private static void signal(String name, String pid) throws Exception {
        assertThat(new ProcessBuilder("kill", "-" + name, pid).start().waitFor())
                .isZero();
    }

    @Test
    void countsConnectionsThatHaveNoRow() throws Exception {
        ServerProcess server = echoServer("-D" + StatFile.CONNECTIONS_PROPERTY + "=2");
        String pid = pidOf(files());
        for (int i = 0; i < 5; i++) {
            started.add(RdmaClient.builder().provider("soft").connect("127.0.0.1", server.port));
        }
        Answer answer =
                until(() -> stat(pid, "--interval", "0.1"), page -> page.out().contains("and 3 more"));
        assertThat(answer.out()).contains("and 3 more: 2 have a row", "connections: 5 open");
    }

    @Test
    void aProcessMayKeepOut() throws Exception {
        echoServer("-D" + StatFile.PROPERTY + "=false");
        assertThat(files()).isEmpty();
        Answer list = statOfUser();
        assertThat(list.exitCode()).isEqualTo(1);
        assertThat(list.err()).contains("-D" + StatFile.PROPERTY + "=false");
        long pid = ProcessHandle.current()
                .children()
                .filter(ProcessHandle::isAlive)
                .map(ProcessHandle::pid)
                .filter(child -> commandLine(child).contains("echo-server"))
                .findFirst()
                .orElseThrow();
        Answer answer = statOfUser("" + pid);
        assertThat(answer.exitCode()).isEqualTo(1);
        assumeThat(commandLine(pid))
                .as("this system does not show command lines")
                .isNotEmpty();
        assertThat(answer.err()).contains("runs with -D" + StatFile.PROPERTY + "=false");
    }

    private static String commandLine(long pid) {
        try {
            return Files.readString(Path.of("/proc", "" + pid, "cmdline"), StandardCharsets.ISO_8859_1);
        } catch (IOException ended) {
            return "";
        }
    }

    @Test
    void saysWhyThereIsNothingToShow() throws Exception {
        Process ended = new ProcessBuilder("true").start();
        ended.waitFor();
        Answer none = stat("" + ended.pid());
        assertThat(none.exitCode()).isEqualTo(1);
        assertThat(none.err()).contains("there is no process " + ended.pid());
        Answer other = stat("" + ProcessHandle.current().parent().orElseThrow().pid());
        assertThat(other.exitCode()).isEqualTo(1);
        assertThat(other.err()).contains("has no file in " + directory());
        Files.createDirectories(directory());
        Files.write(directory().resolve("1"), new byte[10_000]);
        Answer damaged = stat("1");
        assertThat(damaged.exitCode()).isEqualTo(1);
        assertThat(damaged.err()).contains("is not complete").doesNotContain("\tat ");
        for (String wrong : List.of("-1", "x", "--interval 0", "--count 1", "--watch --count 0", "--hangs-after 0")) {
            assertThat(stat(wrong.split(" ")).exitCode()).as(wrong).isEqualTo(2);
        }
    }

    private static long hanging(Answer page) {
        return page.out().lines().filter(line -> line.contains("HANGS")).count();
    }

    @Test
    void marksALoopThatAHandlerBlocks() throws Exception {
        StatFile own = StatFile.own();
        assertThat(own).as("this process has a file").isNotNull();
        String self = "" + ProcessHandle.current().pid();
        CountDownLatch blocked = new CountDownLatch(1);
        try (RdmaServer server = RdmaServer.builder().provider("soft").bind("127.0.0.1", 0, (exchange, message) -> {
                    try {
                        blocked.await();
                    } catch (InterruptedException interrupted) {
                        Thread.currentThread().interrupt();
                    }
                    exchange.reply(message.retain());
                });
                RdmaClient client = RdmaClient.builder().provider("soft").connect("127.0.0.1", server.port())) {
            try {
                var reply = client.request(new byte[] {1});
                String[] question = {"stat", self, "--interval", "0.3", "--hangs-after", "0.5"};
                // Another loop that gets no processor for as long seems to hang as well, for a moment.
                Answer answer = until(() -> run(question), page -> hanging(page) == 1);
                assertThat(hanging(answer)).as(answer.out() + answer.err()).isOne();
                blocked.countDown();
                assertThat(reply.get(60, TimeUnit.SECONDS)).containsExactly(1);
                Answer after = until(() -> run(question), page -> !page.out().contains("HANGS"));
                assertThat(after.out()).as("it waits again").doesNotContain("HANGS");
            } finally {
                blocked.countDown();
            }
        }
    }
}
