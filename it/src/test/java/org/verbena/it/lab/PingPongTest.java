package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import java.io.IOException;
import java.io.InputStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.verbena.tools.Main;
import org.verbena.transport.spi.Patience;
import org.verbena.verbs.Context;
import org.verbena.verbs.Verbs;
import org.verbena.verbs.address.GidEntry;
import org.verbena.verbs.address.GidType;

/**
 * Our ping-pong programs with C's, both ways, and the sample that is connected by hand. rxe only: iWARP has no such
 * queue pairs.
 */
@Tag("lab")
@Timeout(350)
class PingPongTest {
    private static final AtomicInteger NEXT_PORT = new AtomicInteger(18600);
    private static final String DEVICE = LabDevice.RXE.deviceName();
    private static final String HOST = LabDevice.RXE.address();
    /** The index of the RoCE v2 GID that has the device's IPv4 address. */
    static String gidIndex() {
        try (Context context = Verbs.device(DEVICE).open()) {
            for (GidEntry entry : context.queryGids()) {
                if (entry.type() == GidType.ROCE_V2
                        && entry.gid().toInetAddress().getHostAddress().equals(HOST)) {
                    return String.valueOf(entry.index());
                }
            }
        }
        throw new AssertionError("no RoCE v2 GID for " + HOST);
    }

    private static List<String> options(int port, String extra) {
        List<String> options =
                new ArrayList<>(List.of("-d", DEVICE, "-g", gidIndex(), "-p", "" + port, "-n", "500", "-c"));
        if (!extra.isEmpty()) {
            options.addAll(List.of(extra.split(" ")));
        }
        return options;
    }

    private static FutureTask<Integer> startJava(List<String> arguments) {
        FutureTask<Integer> running = new FutureTask<>(() -> Main.run(arguments.toArray(String[]::new)));
        Thread.ofPlatform().daemon().name("java side").start(running);
        return running;
    }

    private static List<String> java(String kind, int port, String extra) {
        List<String> arguments = new ArrayList<>(List.of("pingpong", kind));
        arguments.addAll(options(port, extra));
        return arguments;
    }

    private static List<String> c(String kind, int port, String extra) {
        List<String> command = new ArrayList<>(List.of("ibv_" + kind + "_pingpong"));
        command.addAll(options(port, extra));
        return command;
    }

    /** Waits for a TCP listener, as the kernel lists it. */
    static void awaitTcpListener(int port) throws Exception {
        String wanted = ":%04X 00000000".formatted(port);
        Patience.until(
                "somebody listens on TCP port " + port,
                () -> contains("/proc/net/tcp", wanted) || contains("/proc/net/tcp6", wanted));
    }

    private static boolean contains(String file, String wanted) {
        try (var lines = Files.lines(Path.of(file))) {
            return lines.anyMatch(line -> line.contains(wanted));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Each kind, and each option once. */
    private static Stream<Arguments> kinds() {
        return Stream.of(
                arguments("rc", ""),
                arguments("rc", "--new_send -e"),
                arguments("uc", "-e"),
                arguments("ud", ""),
                arguments("srq", "-e"));
    }

    /** The other combinations. */
    private static Stream<Arguments> otherOptions() {
        return Stream.of(
                arguments("rc", "-e"),
                arguments("rc", "-N"),
                arguments("uc", ""),
                arguments("ud", "-e"),
                arguments("srq", ""));
    }

    @ParameterizedTest
    @MethodSource("kinds")
    void javaServesC(String kind, String extra) throws Exception {
        int port = NEXT_PORT.incrementAndGet();
        FutureTask<Integer> server = startJava(java(kind, port, extra));
        awaitTcpListener(port);
        List<String> command = c(kind, port, extra);
        command.add(HOST);
        String output = PeerProgram.run(Patience.LIMIT, command.toArray(String[]::new));
        assertThat(server.get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS)).isZero();
        assertThat(output).contains("500 iters in").doesNotContain("invalid data");
    }

    @ParameterizedTest
    @MethodSource("kinds")
    void cServesJava(String kind, String extra) throws Exception {
        int port = NEXT_PORT.incrementAndGet();
        try (PeerProgram server = PeerProgram.start(c(kind, port, extra))) {
            awaitTcpListener(port);
            List<String> arguments = java(kind, port, extra);
            arguments.add(2, HOST);
            assertThat(startJava(arguments).get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                    .isZero();
            assertThat(server.awaitExit(Patience.LIMIT)).isZero();
            assertThat(server.output()).contains("500 iters in").doesNotContain("invalid data");
        }
    }

    @Tag("lab-full")
    @ParameterizedTest
    @MethodSource("otherOptions")
    void bothServeWithOtherOptions(String kind, String extra) throws Exception {
        javaServesC(kind, extra);
        cServesJava(kind, extra);
    }

    @ParameterizedTest
    @EnumSource
    void saysThatThereIsNoXrc(LabDevice device) {
        for (String host : new String[] {"", " " + HOST}) {
            String line = "pingpong xsrq -d " + device.deviceName() + " -g 0" + host;
            Command command = Command.run(line.split(" "));
            assertThat(command.exitCode()).isEqualTo(1);
            assertThat(command.err())
                    .isEqualToIgnoringNewLines("pingpong xsrq: xsrq needs extended reliable connections (XRC), which "
                            + device.deviceName() + " does not have: use srq");
        }
    }

    /** Neither device has any of this, the options of which are tested on a simulated one. */
    @ParameterizedTest
    @CsvSource({
        "rxe0, rc, -o, '-o (--odp) needs on-demand paging', The device isn't ODP capable",
        "rxe0, rc, --iodp -P, '-O (--iodp) needs on-demand paging', The device isn't ODP capable",
        "rxe0, rc, -t, '-t (--ts) needs completion timestamps', The device isn't completion timestamp capable",
        "rxe0, rc, -j, '-j (--dm) needs device memory', Device doesn't support dm allocation",
        "rxe0, srq, -o, '-o (--odp) needs on-demand paging', The device isn't ODP capable",
        "siw0, rc, -o, '-o (--odp) needs on-demand paging', The device isn't ODP capable",
        "siw0, rc, -t, '-t (--ts) needs completion timestamps', The device isn't completion timestamp capable",
        "siw0, rc, -j, '-j (--dm) needs device memory', Device doesn't support dm allocation",
        "siw0, rc, -N, '-N (--new_send) needs work request builders (ibv_wr_*)', Couldn't create QP",
    })
    void saysWhatTheDeviceLacksAsCDoes(String device, String kind, String options, String message, String cMessage) {
        // Nobody listens on the port: a program that connects before it checks would say so.
        List<String> arguments = new ArrayList<>(List.of("-d", device, "-g", "0", "-p", "1"));
        arguments.addAll(List.of(options.split(" ")));
        arguments.add(HOST);
        List<String> words = new ArrayList<>(List.of("pingpong", kind));
        words.addAll(arguments);
        Command command = Command.run(words.toArray(String[]::new));
        assertThat(command.exitCode()).isEqualTo(1);
        assertThat(command.err())
                .isEqualToIgnoringNewLines(
                        "pingpong " + kind + ": " + message + ", which " + device + " does not have");
        arguments.addFirst("ibv_" + kind + "_pingpong");
        try (PeerProgram program = PeerProgram.start(arguments)) {
            assertThat(program.awaitExit(Patience.LIMIT)).isEqualTo(1);
            assertThat(program.output()).contains(cMessage).doesNotContain("connect");
        }
    }

    @Test
    void saysThatRoceNeedsAGid() {
        Command command = Command.run("pingpong", "rc", "-d", DEVICE, "-p", "" + NEXT_PORT.incrementAndGet());
        assertThat(command.exitCode()).isEqualTo(1);
        assertThat(command.err()).hasLineCount(1).contains("give a GID index").contains("(-g)");
    }

    @Test
    void saysThatADatagramIsTooLong() {
        Command command = Command.run("pingpong", "ud", "-d", DEVICE, "-g", gidIndex(), "-s", "1025");
        assertThat(command.exitCode()).isEqualTo(1);
        assertThat(command.err()).hasLineCount(1).contains("1024 bytes of the port's MTU");
    }

    private record Result(int exitCode, String out) {}

    private static FutureTask<Result> startByHand(int port, String... server) {
        List<String> command = new ArrayList<>(List.of("rdma-rc"));
        command.addAll(List.of(server));
        command.addAll(List.of("-d", DEVICE, "-g", gidIndex(), "-p", "" + port));
        FutureTask<Result> running = new FutureTask<>(() -> {
            StringWriter out = new StringWriter();
            String[] all = command.toArray(String[]::new);
            int exitCode = Main.commandLine(all)
                    .setOut(new PrintWriter(out, true))
                    .setErr(new PrintWriter(out, true))
                    .execute(all);
            return new Result(exitCode, out.toString());
        });
        Thread.ofPlatform().daemon().name("java side").start(running);
        return running;
    }

    private static Result await(FutureTask<Result> running) throws Exception {
        Result result = running.get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS);
        assertThat(result.exitCode()).as(result.out()).isZero();
        return result;
    }

    @Test
    void sendsReadsAndWritesOverAQueuePairConnectedByHand() throws Exception {
        int port = NEXT_PORT.incrementAndGet();
        FutureTask<Result> server = startByHand(port);
        awaitTcpListener(port);
        assertThat(await(startByHand(port, HOST)).out()).contains("received: a message sent", "read: a text to read");
        assertThat(await(server).out()).contains("written here: a text written");
    }

    /** The conversation of RDMA_RC_example, with a C program of it. */
    @Test
    void talksWithCAsTheExampleOfTheManualDoes(@TempDir Path folder) throws Exception {
        Path source = folder.resolve("rc_example.c");
        try (InputStream text = PingPongTest.class.getResourceAsStream("rc_example.c")) {
            Files.copy(text, source);
        }
        String program = folder.resolve("rc_example").toString();
        PeerProgram.run(
                Patience.LIMIT, "gcc", "-std=gnu11", "-Wall", "-Werror", source.toString(), "-o", program, "-libverbs");

        int port = NEXT_PORT.incrementAndGet();
        FutureTask<Result> server = startByHand(port);
        awaitTcpListener(port);
        assertThat(PeerProgram.run(Patience.LIMIT, program, DEVICE, gidIndex(), "" + port, HOST))
                .contains("Message is: 'a message sent'", "Contents of server's buffer: 'a text to read'");
        assertThat(await(server).out()).contains("written here: RDMA write ope");

        port = NEXT_PORT.incrementAndGet();
        try (PeerProgram c = PeerProgram.start(program, DEVICE, gidIndex(), "" + port)) {
            awaitTcpListener(port);
            assertThat(await(startByHand(port, HOST)).out())
                    .contains("received: SEND operation", "read: RDMA read oper");
            assertThat(c.awaitExit(Patience.LIMIT)).as(c.output()).isZero();
            assertThat(c.output()).contains("Contents of server buffer: 'a text written'");
        }
    }
}
