package org.verbena.samples;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.cm.QueuePairAddress;
import org.verbena.verbs.Gid;

/** {@code pingpong xsrq} with itself and with C's program, on the simulated device of {@code src/test/c/xrc_ibverbs.c}: no adapter here has XRC. */
@Timeout(120)
class XsrqPingPongTest {
    private static final String C_PROGRAM = "ibv_xsrq_pingpong";
    private static final String LOCALHOST = "127.0.0.1";

    @TempDir
    private static Path directory;

    private static Path library;

    /** A process and what it printed. */
    private record Side(String name, Process process, Path output) {
        String text() throws IOException {
            return Files.readString(output);
        }

        boolean hasFailed() {
            return !process.isAlive() && process.exitValue() != 0;
        }
    }

    private final List<Side> sides = new ArrayList<>();

    @BeforeAll
    static void compile() throws Exception {
        Assumptions.assumeTrue(
                Files.exists(Path.of("/usr/include/infiniband/verbs.h")), "libibverbs-dev is not installed");
        library = directory.resolve("libibverbs.so.1");
        Path messages = directory.resolve("gcc");
        Process gcc;
        try {
            gcc = new ProcessBuilder(
                            "gcc",
                            "-shared",
                            "-fPIC",
                            "-Wall",
                            "-Werror",
                            "-o",
                            library.toString(),
                            "src/test/c/xrc_ibverbs.c",
                            "-lpthread")
                    .redirectErrorStream(true)
                    .redirectOutput(messages.toFile())
                    .start();
        } catch (IOException missing) {
            Assumptions.abort("gcc is not installed");
            return;
        }
        assertThat(gcc.waitFor()).as(Files.readString(messages)).isZero();
    }

    @AfterEach
    void endAll() {
        sides.forEach(side -> side.process().destroyForcibly());
    }

    private Side start(String name, ProcessBuilder builder) throws IOException {
        Path output = directory.resolve("output" + System.nanoTime());
        Side side = new Side(
                name,
                builder.redirectErrorStream(true)
                        .redirectOutput(output.toFile())
                        .start(),
                output);
        sides.add(side);
        return side;
    }

    private Side java(String... arguments) throws IOException {
        List<String> words = new ArrayList<>(List.of("pingpong", "xsrq"));
        words.addAll(List.of(arguments));
        List<String> command = ServerProcess.commandLine(words.toArray(String[]::new));
        command.add(1, "-Dorg.verbena.verbs.library=" + library);
        return start("Java's side", new ProcessBuilder(command));
    }

    private Side c(String... arguments) throws IOException {
        List<String> command = new ArrayList<>(List.of(C_PROGRAM));
        command.addAll(List.of(arguments));
        ProcessBuilder builder = new ProcessBuilder(command);
        builder.environment().put("LD_LIBRARY_PATH", directory.toString());
        try {
            return start("C's side", builder);
        } catch (IOException missing) {
            return Assumptions.abort(C_PROGRAM + " of ibverbs-utils is not installed");
        }
    }

    private static String freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0)) {
            return String.valueOf(socket.getLocalPort());
        }
    }

    /** Asks the kernel: to connect would be to be a client. */
    private static void awaitListener(Side server, String port) throws Exception {
        Pattern wanted = Pattern.compile("^ *\\d+: \\w+:%04X \\w+:0000 0A ".formatted(Integer.parseInt(port)));
        while (true) {
            for (String file : List.of("/proc/net/tcp", "/proc/net/tcp6")) {
                try (var lines = Files.lines(Path.of(file))) {
                    if (lines.anyMatch(line -> wanted.matcher(line).find())) {
                        return;
                    }
                }
            }
            assertThat(server.process().isAlive())
                    .as("the server lives; it printed %s", server.text())
                    .isTrue();
            Thread.sleep(20);
        }
    }

    private static String[] with(String options, String... others) {
        List<String> all = new ArrayList<>(List.of(others));
        if (!options.isEmpty()) {
            all.addAll(List.of(options.split(" ")));
        }
        return all.toArray(String[]::new);
    }

    @ParameterizedTest
    @CsvSource({"'-n 100 -e', java java", "'-n 100 -s 64 -g 0', java"})
    void javaServesJava(String options, String clients) throws Exception {
        serves(true, options, clients);
    }

    @ParameterizedTest
    @CsvSource({"'', c", "'-n 100', c c java", "'-n 50 -e -g 0 -s 10000 -m 256 -l 3', java c"})
    void javaServesC(String options, String clients) throws Exception {
        serves(true, options, clients);
    }

    @ParameterizedTest
    @CsvSource({"'', java", "'-n 100', c java java", "'-n 50 -e -g 0 -s 10000 -m 256 -l 3', java c"})
    void cServesJava(String options, String clients) throws Exception {
        serves(false, options, clients);
    }

    private void awaitSuccess() throws Exception {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        while (sides.stream().anyMatch(side -> side.process().isAlive())
                && sides.stream().noneMatch(Side::hasFailed)
                && System.nanoTime() < deadline) {
            Thread.sleep(20);
        }
        StringBuilder printed = new StringBuilder();
        for (Side side : sides) {
            printed.append(side.name())
                    .append(
                            side.process().isAlive()
                                    ? ", still running"
                                    : ", ended with " + side.process().exitValue())
                    .append(":\n")
                    .append(side.text());
        }
        for (Side side : sides) {
            assertThat(side.process().isAlive()).as("%s", printed).isFalse();
            assertThat(side.process().exitValue()).as("%s", printed).isZero();
            assertThat(side.text()).contains("success");
        }
    }

    private void serves(boolean java, String options, String clients) throws Exception {
        String port = freePort();
        String[] kinds = clients.split(" ");
        String[] serving = with(options, "-d", "xrc0", "-p", port, "-c", "" + kinds.length);
        String[] visiting = with(options, LOCALHOST, "-d", "xrc0", "-p", port);
        Side server = java ? java(serving) : c(serving);
        awaitListener(server, port);
        for (String kind : kinds) {
            if (kind.equals("java")) {
                java(visiting);
            } else {
                c(visiting);
            }
        }
        awaitSuccess();
        // What each says of itself is what the other has understood.
        Side served = sides.getFirst();
        for (Side client : sides.subList(1, sides.size())) {
            assertThat(addresses(client, "local")).hasSize(1).isSubsetOf(addresses(served, "remote"));
            assertThat(addresses(client, "remote")).hasSize(1).isSubsetOf(addresses(served, "local"));
        }
        assertThat(addresses(served, "local")).doesNotHaveDuplicates().hasSize(kinds.length);
    }

    /** The addresses in a side's output, with the GIDs in one notation. */
    private static List<String> addresses(Side side, String whose) throws IOException {
        List<String> addresses = new ArrayList<>();
        for (String line : side.text().lines().toList()) {
            if (line.contains(whose + ": ")) {
                int gid = line.indexOf("GID ") + 4;
                addresses.add(line.substring(line.indexOf("LID"), gid)
                        + InetAddress.getByName(line.substring(gid)).getHostAddress());
            }
        }
        return addresses;
    }

    @Test
    void readsWhatCWrites() throws Exception {
        try (ServerSocket listener = new ServerSocket(0, 1, InetAddress.getByName(LOCALHOST))) {
            c(LOCALHOST, "-g", "0", "-p", "" + listener.getLocalPort());
            listener.setSoTimeout(30_000);
            try (Socket socket = listener.accept()) {
                socket.setSoTimeout(30_000);
                byte[] bytes = socket.getInputStream().readNBytes(XsrqAddress.WIRE_BYTES);
                assertThat(bytes).hasSize(66).endsWith((byte) 0);
                String text = new String(bytes, 0, 65, StandardCharsets.US_ASCII);
                XsrqAddress address = XsrqAddress.ofWire(text);
                assertThat(address.toWire()).isEqualTo(text);
                assertThat(address.receiver().gid().subnetPrefix()).isEqualTo(0xfe80L << 48);
                assertThat(address.receiver().gid().interfaceId())
                        .isEqualTo(address.receiver().lid());
                assertThat(address.senderNumber())
                        .isNotEqualTo(address.receiver().queuePairNumber());
                assertThat(address.sender().packetSequenceNumber())
                        .isEqualTo(address.receiver().packetSequenceNumber());
            }
        }
    }

    @Test
    void writesAndReadsAddresses() {
        XsrqAddress address = new XsrqAddress(
                new QueuePairAddress(0x12, 0x345678, 0xfedcba, new Gid(0xfe80L << 48, 0xa000b)), 0x9abcde, 0x42);
        String wire = "0012:345678:9abcde:fedcba:000042:fe8000000000000000000000000a000b";
        assertThat(address.toWire()).isEqualTo(wire).hasSize(XsrqAddress.WIRE_BYTES - 1);
        assertThat(XsrqAddress.ofWire(wire)).isEqualTo(address);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "0012:345678:9abcde:fe80000000000000000000000000000b",
                "0012:345678:9abcde:fedcba:00004g:fe80000000000000000000000000000b",
                "0012:345678:9abcde:fedcba:000042:                                ",
            })
    void refusesWhatIsNoAddress(String text) {
        assertThatExceptionOfType(CommandFailure.class)
                .isThrownBy(() -> XsrqAddress.ofWire(text))
                .withMessageContaining("'" + text + "'")
                .withMessageContaining("ibv_xsrq_pingpong");
    }

    @Test
    void saysThatThePeerIsSomethingElse() throws Exception {
        String port = freePort();
        Side server = java("-p", port);
        awaitListener(server, port);
        try (Socket stranger = new Socket()) {
            stranger.connect(new InetSocketAddress(LOCALHOST, Integer.parseInt(port)));
            stranger.getOutputStream()
                    .write("GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: a stranger\r\nAccept: */*\r\n\r\n"
                            .getBytes(StandardCharsets.US_ASCII));
            assertThat(server.process().waitFor(30, TimeUnit.SECONDS)).isTrue();
        }
        assertThat(server.process().exitValue()).isOne();
        assertThat(server.text())
                .contains("pingpong xsrq: the peer sent 'GET / HTTP/1.1")
                .doesNotContain("at org.");
    }

    @Test
    void saysThatThePeerWentAway() throws Exception {
        String port = freePort();
        Side server = java("-p", port);
        awaitListener(server, port);
        new Socket(LOCALHOST, Integer.parseInt(port)).close();
        assertThat(server.process().waitFor(30, TimeUnit.SECONDS)).isTrue();
        assertThat(server.process().exitValue()).isOne();
        assertThat(server.text())
                .contains("closed the connection after 0 of 66 bytes")
                .doesNotContain("at org.");
    }
}
