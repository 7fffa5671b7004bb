package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.InputStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.verbena.tools.Main;
import org.verbena.transport.spi.Patience;

/** The programs of the tutorial with a C program of the same conversation, both ways, and with themselves. */
@Tag("lab")
@Timeout(350)
class TutorialTest {
    private static final int PORT = 7890;

    @TempDir
    @SuppressWarnings("NullAway.Init") // JUnit sets it
    static Path folder;

    @BeforeAll
    static void compile() throws Exception {
        Path source = folder.resolve("tutorial.c");
        try (InputStream text = TutorialTest.class.getResourceAsStream("tutorial.c")) {
            Files.copy(text, source);
        }
        PeerProgram.run(
                Patience.LIMIT,
                "gcc",
                "-std=gnu11",
                "-Wall",
                "-Werror",
                source.toString(),
                "-o",
                program(),
                "-lrdmacm",
                "-libverbs",
                "-pthread");
    }

    private static String program() {
        return folder.resolve("tutorial").toString();
    }

    private record Result(int exitCode, List<String> lines) {}

    private static FutureTask<Result> start(String... command) {
        FutureTask<Result> running = new FutureTask<>(() -> {
            StringWriter out = new StringWriter();
            int exitCode = Main.commandLine(command)
                    .setOut(new PrintWriter(out, true))
                    .setErr(new PrintWriter(out, true))
                    .execute(command);
            return new Result(exitCode, out.toString().lines().toList());
        });
        Thread.ofPlatform().daemon().name(command[0]).start(running);
        return running;
    }

    private static FutureTask<Result> startServer(LabDevice device, int port, int clients) {
        FutureTask<Result> serving =
                start("tutorial-server", "-s", device.address(), "-p", "" + port, "-n", "" + clients);
        Patience.until(
                "tutorial-server listens",
                () -> PeerProgram.capture("rdma", "resource", "show", "cm_id").contains(":" + port));
        return serving;
    }

    private static List<String> await(FutureTask<Result> running) throws Exception {
        Result result = running.get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS);
        assertThat(result.exitCode()).as(String.join("\n", result.lines())).isZero();
        return result.lines();
    }

    private static String ours(String side) {
        return "message from the " + side + ", process "
                + ProcessHandle.current().pid();
    }

    @ParameterizedTest
    @EnumSource
    void visitsTheServerInC(LabDevice device) throws Exception {
        int port = PORT + device.ordinal();
        try (PeerProgram server = PeerProgram.start(program(), "server", device.address(), "" + port)) {
            server.awaitListening(port);
            List<String> client = await(start("tutorial-client", device.address(), "" + port));
            assertThat(client)
                    .containsExactlyInAnyOrder(
                            "address resolved.",
                            "route resolved.",
                            "connected. posting send...",
                            "send completed successfully.",
                            "received message: hello from C's server " + server.pid(),
                            "disconnected.");
            assertThat(server.awaitExit(Patience.LIMIT)).as(server.output()).isZero();
            assertThat(server.lines()).contains("received message: " + ours("client") + " (1024 bytes)");
        }
    }

    @ParameterizedTest
    @EnumSource
    void isVisitedByTheClientInC(LabDevice device) throws Exception {
        int port = PORT + 2 + device.ordinal();
        FutureTask<Result> serving = startServer(device, port, 1);
        try (PeerProgram client = PeerProgram.start(program(), "client", device.address(), "" + port)) {
            assertThat(client.awaitExit(Patience.LIMIT)).as(client.output()).isZero();
            assertThat(client.lines()).contains("received message: " + ours("server") + " (1024 bytes)");
            assertThat(await(serving))
                    .containsExactlyInAnyOrder(
                            "listening on port " + port + ".",
                            "received connection request.",
                            "connected. posting send...",
                            "received message: hello from C's client " + client.pid(),
                            "send completed successfully.",
                            "peer disconnected.");
        }
    }

    @ParameterizedTest
    @EnumSource
    void servesOneClientAfterAnother(LabDevice device) throws Exception {
        int port = PORT + 4 + device.ordinal();
        FutureTask<Result> serving = startServer(device, port, 3);
        for (int client = 0; client < 3; client++) {
            assertThat(await(start("tutorial-client", device.address(), "" + port)))
                    .contains("received message: " + ours("server"), "disconnected.");
        }
        assertThat(await(serving))
                .filteredOn(line -> line.equals("received message: " + ours("client")))
                .hasSize(3);
    }

    @ParameterizedTest
    @EnumSource
    void saysThatNobodyListens(LabDevice device) throws Exception {
        Result client =
                start("tutorial-client", device.address(), "7699").get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS);
        assertThat(client.exitCode()).isEqualTo(1);
        assertThat(client.lines().getLast()).contains("tutorial-client: ", "nobody listens");
    }
}
