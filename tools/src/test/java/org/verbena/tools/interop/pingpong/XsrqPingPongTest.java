package org.verbena.tools.interop.pingpong;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.verbena.tools.interop.pingpong.SimulatedDevice.LOCALHOST;
import static org.verbena.tools.interop.pingpong.SimulatedDevice.awaitListener;
import static org.verbena.tools.interop.pingpong.SimulatedDevice.freePort;
import static org.verbena.tools.interop.pingpong.SimulatedDevice.with;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.cm.QueuePairAddress;
import org.verbena.samples.command.CommandFailure;
import org.verbena.tools.interop.pingpong.SimulatedDevice.Side;
import org.verbena.verbs.address.Gid;

/**
 * {@code pingpong xsrq} with itself and with C's program, on the simulated device of
 * {@code src/test/c/simulated_ibverbs.c}: no adapter here has XRC.
 */
@Timeout(400)
class XsrqPingPongTest {
    @TempDir
    private static Path directory;

    private SimulatedDevice device;

    @BeforeAll
    static void compile() throws Exception {
        SimulatedDevice.compile(directory);
    }

    @BeforeEach
    void open() {
        device = new SimulatedDevice(directory);
    }

    @AfterEach
    void endAll() {
        device.close();
    }

    private Side java(String... arguments) throws IOException {
        return device.java("xsrq", arguments);
    }

    private Side c(String... arguments) throws IOException {
        return device.c("xsrq", arguments);
    }

    @ParameterizedTest
    @Tag("full")
    @CsvSource({"'-n 100 -e', java java", "'-n 100 -s 64 -g 0 -o', java"})
    void javaServesJava(String options, String clients) throws Exception {
        serves(true, options, clients);
    }

    @ParameterizedTest
    @CsvSource("'-n 100 -o', c c java")
    void javaServesBoth(String options, String clients) throws Exception {
        serves(true, options, clients);
    }

    @ParameterizedTest
    @CsvSource("'-n 50 -e -g 0 -s 10000 -m 256 -l 3', java c")
    void cServesBoth(String options, String clients) throws Exception {
        serves(false, options, clients);
    }

    @ParameterizedTest
    @Tag("full")
    @CsvSource({"'', c", "'-n 50 -e -g 0 -s 10000 -m 256 -l 3', java c"})
    void javaServesC(String options, String clients) throws Exception {
        serves(true, options, clients);
    }

    @ParameterizedTest
    @Tag("full")
    @CsvSource({"'', java", "'-n 100 --odp', c java java"})
    void cServesJava(String options, String clients) throws Exception {
        serves(false, options, clients);
    }

    private void serves(boolean java, String options, String clients) throws Exception {
        String port = freePort();
        String[] kinds = clients.split(" ");
        String[] serving = with(options, "-d", SimulatedDevice.NAME, "-p", port, "-c", "" + kinds.length);
        String[] visiting = with(options, LOCALHOST, "-d", SimulatedDevice.NAME, "-p", port);
        Side server = java ? java(serving) : c(serving);
        awaitListener(server, port);
        for (String kind : kinds) {
            if (kind.equals("java")) {
                java(visiting);
            } else {
                c(visiting);
            }
        }
        device.awaitSuccess();
        boolean onDemand = options.contains("-o");
        for (Side side : device.sides()) {
            // 1: LOCAL_WRITE, 0x40: ON_DEMAND.
            assertThat(side.text()).contains("success", "access 0x" + (onDemand ? "41" : "1") + ",");
        }
        // What each says of itself is what the other has understood.
        Side served = device.sides().getFirst();
        for (Side client : device.sides().subList(1, device.sides().size())) {
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

    @ParameterizedTest
    @CsvSource({
        "odp, '-o (--odp) needs on-demand paging, which sim0 does not have'",
        "odp-xrc, '-o (--odp) needs on-demand paging of XRC''s [SEND, SRQ_RECV], and sim0 supports it for none of its operations'"
    })
    void saysThatTheDeviceHasNoPaging(String lacking, String message) throws Exception {
        Side java = device.javaLacking(lacking, "xsrq", LOCALHOST, "-o", "-p", "1");
        Side c = device.cLacking(lacking, "xsrq", LOCALHOST, "-o", "-p", "1");
        assertThat(java.awaitExit()).isOne();
        assertThat(java.text()).contains("pingpong xsrq: " + message).doesNotContain("at org.");
        assertThat(c.awaitExit()).isOne();
        assertThat(c.text()).contains("The device isn't ODP capable or does not support XRC");
    }

    @Test
    void readsWhatCWrites() throws Exception {
        try (ServerSocket listener = new ServerSocket(0, 1, InetAddress.getByName(LOCALHOST))) {
            c(LOCALHOST, "-g", "0", "-p", "" + listener.getLocalPort());
            listener.setSoTimeout(60_000);
            try (Socket socket = listener.accept()) {
                socket.setSoTimeout(60_000);
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
    void refusesInvalidAddresses(String text) {
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
            assertThat(server.awaitExit()).isOne();
        }
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
        assertThat(server.awaitExit()).isOne();
        assertThat(server.text())
                .contains("closed the connection after 0 of 66 bytes")
                .doesNotContain("at org.");
    }
}
