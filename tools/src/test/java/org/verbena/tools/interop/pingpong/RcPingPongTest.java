package org.verbena.tools.interop.pingpong;

import static org.assertj.core.api.Assertions.assertThat;
import static org.verbena.tools.interop.pingpong.SimulatedDevice.LOCALHOST;
import static org.verbena.tools.interop.pingpong.SimulatedDevice.awaitListener;
import static org.verbena.tools.interop.pingpong.SimulatedDevice.freePort;
import static org.verbena.tools.interop.pingpong.SimulatedDevice.with;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.tools.Main;
import org.verbena.tools.interop.pingpong.SimulatedDevice.Side;

/**
 * {@code pingpong rc} and {@code srq} with what no device of the lab has, with C's programs on the simulated device:
 * both have to ask the same of it.
 */
@Timeout(400)
class RcPingPongTest {
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

    private Side start(String side, String kind, String[] arguments) throws IOException {
        return side.equals("java") ? device.java(kind, arguments) : device.c(kind, arguments);
    }

    /** Runs both sides to their end. */
    private void exchange(String kind, String options, String serving, String visiting) throws Exception {
        String port = freePort();
        Side server = start(serving, kind, with(options, "-d", SimulatedDevice.NAME, "-p", port, "-c"));
        awaitListener(server, port);
        start(visiting, kind, with(options, LOCALHOST, "-d", SimulatedDevice.NAME, "-p", port, "-c"));
        device.awaitSuccess();
        for (Side side : device.sides()) {
            assertThat(side.text()).contains("iters in").doesNotContain("invalid data", "Couldn't", "continuing");
        }
    }

    private String seen(int side) throws IOException {
        return device.sides()
                .get(side)
                .text()
                .lines()
                .filter(line -> line.startsWith("simulated device: "))
                .findFirst()
                .orElseThrow();
    }

    private List<String> cycles(int side) throws IOException {
        return device.sides()
                .get(side)
                .text()
                .lines()
                .filter(line -> line.contains("clock cycles"))
                .toList();
    }

    @ParameterizedTest
    @CsvSource({
        "c, '-n 100 -s 64', 'access 0x1,', sends 100, built 0, inline 100",
        "java, '-n 100 -O -P -s 8000', 'access 0x41 of everything,', prefetched 8000 (0x1), dm 0, sends 100",
        "c, '-n 100 --iodp --prefetch --new_send -t', 'access 0x41 of everything,', completion fields 0x80, built 100, inline 0",
    })
    void asksTheSameAsC(String server, String options, String access, String first, String second, String third)
            throws Exception {
        asksTheSame(server, options, access, first, second, third);
    }

    /** Each option by itself. */
    @ParameterizedTest
    @Tag("full")
    @CsvSource({
        "java, '-n 100', 'access 0x1,', sends 100, built 0, inline 0",
        "java, '-n 100 -o', 'access 0x41,', prefetched 0, dm 0, sends 100",
        "c, '-n 100 --odp -P', 'access 0x41,', prefetched 4096 (0x1), dm 0, sends 100",
        "java, '-n 100 -t', 'access 0x1,', completion fields 0x80, built 0, sends 100",
        "c, '-n 100 -N', 'access 0x1,', completion fields 0x0, built 100, inline 0",
        "java, '-n 100 -N -s 64 -e', 'access 0x1,', completion fields 0x0, built 100, inline 100",
    })
    void asksTheSameAsCWithEachOption(
            String server, String options, String access, String first, String second, String third) throws Exception {
        asksTheSame(server, options, access, first, second, third);
    }

    private void asksTheSame(String server, String options, String access, String first, String second, String third)
            throws Exception {
        exchange("rc", options, server, server.equals("c") ? "java" : "c");
        assertThat(seen(0)).contains(access, first, second, third).isEqualTo(seen(1));
        assertThat(cycles(0)).hasSize(options.contains("-t") ? 3 : 0).isEqualTo(cycles(1));
    }

    /** The client copies to the device and the server, which validates, from there. */
    @ParameterizedTest
    @CsvSource("'-n 100 --dm --ts -N -s 8192', 'completion fields 0x80,', 8192, built 100")
    void usesDeviceMemoryAsCDoes(String options, String fields, int bytes, String sends) throws Exception {
        usesDeviceMemory(options, fields, bytes, sends);
    }

    @ParameterizedTest
    @Tag("full")
    @CsvSource({
        "'-n 100 -j', 'completion fields 0x0,', 4096, built 0",
        "'-n 100 -j -s 16', 'completion fields 0x0,', 16, sends 100",
    })
    void usesDeviceMemoryOfOtherLengthsAsCDoes(String options, String fields, int bytes, String sends)
            throws Exception {
        usesDeviceMemory(options, fields, bytes, sends);
    }

    private void usesDeviceMemory(String options, String fields, int bytes, String sends) throws Exception {
        exchange("rc", options, "java", "c");
        String server = seen(0);
        String client = seen(1);
        device.close();
        device = new SimulatedDevice(directory);
        exchange("rc", options, "c", "java");
        assertThat(server)
                .isEqualTo(seen(0))
                .contains(
                        "access 0x21,",
                        fields,
                        "dm " + bytes + ", copied there 0, and back " + bytes,
                        sends,
                        "inline 0");
        assertThat(client)
                .isEqualTo(seen(1))
                .contains("access 0x21,", fields, "dm " + bytes + ", copied there " + bytes + ", and back 0,", sends);
    }

    /** C's program takes an event without a completion for an error when it has timestamps. */
    @Test
    @Tag("full")
    void sleepsWithTimestamps() throws Exception {
        exchange("rc", "-n 101 -t -e", "java", "java");
        assertThat(cycles(0))
                .containsExactly(
                        "Max receive completion clock cycles = 9",
                        "Min receive completion clock cycles = 5",
                        "Average receive completion clock cycles = 7.000000");
    }

    @Test
    void printsFiguresAsJson() throws Exception {
        String port = freePort();
        Side server = device.java("rc", "-d", SimulatedDevice.NAME, "-p", port, "-n", "101", "-t", "-e", "--json");
        awaitListener(server, port);
        device.java("rc", LOCALHOST, "-d", SimulatedDevice.NAME, "-p", port, "-n", "101", "-t", "-e");
        device.awaitSuccess();
        assertThat(server.text())
                .contains("{\n  \"bytes\": 827392,\n  \"iterations\": 101,\n  \"seconds\": ")
                .contains("\"megabitsPerSecond\": ", "\"microsPerIteration\": ")
                .contains(
                        "\"receiveCycles\": {\n    \"max\": \"9\",\n    \"min\": \"5\",\n    \"average\": 7.0\n  }\n}")
                .doesNotContain("iters in", "LID");
    }

    @ParameterizedTest
    @CsvSource("'-n 500 -o -q 4', java, c")
    void sharesReceivesWithPaging(String options, String serving, String visiting) throws Exception {
        sharesReceives(options, serving, visiting);
    }

    @ParameterizedTest
    @Tag("full")
    @CsvSource({"'-n 500 --odp -e', c, java", "'-n 500 -q 3', java, c"})
    void sharesReceivesOfEitherKind(String options, String serving, String visiting) throws Exception {
        sharesReceives(options, serving, visiting);
    }

    private void sharesReceives(String options, String serving, String visiting) throws Exception {
        exchange("srq", options, serving, visiting);
        String access = options.contains("-o") || options.contains("--odp") ? "access 0x41," : "access 0x1,";
        assertThat(seen(0)).contains(access);
        assertThat(seen(1)).contains(access);
    }

    @Test
    void goesOnWithoutPrefetching() throws Exception {
        String port = freePort();
        Side java = device.javaLacking("prefetch", "rc", "-p", port, "-oP");
        awaitListener(java, port);
        Side c = device.cLacking("prefetch", "rc", LOCALHOST, "-p", port, "-oP");
        device.awaitSuccess();
        assertThat(java.text())
                .contains("continuing without -P (--prefetch): ibv_advise_mr(", "EOPNOTSUPP", "1000 iters in");
        assertThat(c.text()).contains("Couldn't prefetch MR").contains("1000 iters in");
    }

    @ParameterizedTest
    @CsvSource({
        "rc, -o, odp, '-o (--odp) needs on-demand paging, which sim0 does not have', The device isn't ODP capable",
        "rc, -t, timestamps, '-t (--ts) needs completion timestamps, which sim0', The device isn't completion timestamp capable",
        "rc, -j -s 8193, '', '-j (--dm) needs 8193 bytes of device memory, and sim0 has 8192', Device memory is insufficient",
    })
    void refusesWhatTheDeviceLacksAsCDoes(String kind, String options, String lacking, String message, String cMessage)
            throws Exception {
        refuses(kind, options, lacking, message, cMessage);
    }

    @ParameterizedTest
    @Tag("full")
    @CsvSource({
        "rc, -O, odp, '-O (--iodp) needs on-demand paging, which sim0 does not have', The device isn't ODP capable",
        "rc, -o, odp-recv, 'paging of RC''s [SEND, RECV], and sim0 supports it for [SEND, SRQ_RECV]', The device isn't ODP capable",
        "rc, -O, implicit, '-O (--iodp) needs implicit on-demand paging, which sim0', The device doesn't support implicit ODP",
        "rc, -j, dm, '-j (--dm) needs device memory, which sim0 does', Device doesn't support dm allocation",
        "rc, -N, builder, '-N (--new_send) needs work request builders (ibv_wr_*), which sim0 does not have', Couldn't create QP",
        "srq, -o, odp, '-o (--odp) needs on-demand paging, which sim0 does not have', The device isn't ODP capable",
        "srq, -o, odp-srq, 'paging of RC''s [SEND, SRQ_RECV], and sim0 supports it for [SEND, RECV]', The device isn't ODP capable",
    })
    void refusesWhateverTheDeviceLacksAsCDoes(
            String kind, String options, String lacking, String message, String cMessage) throws Exception {
        refuses(kind, options, lacking, message, cMessage);
    }

    private void refuses(String kind, String options, String lacking, String message, String cMessage)
            throws Exception {
        // Nobody listens on the port: a program that connects before it checks would say so.
        Side java = device.javaLacking(lacking, kind, with(options, LOCALHOST, "-p", "1"));
        Side c = device.cLacking(lacking, kind, with(options, LOCALHOST, "-p", "1"));
        assertThat(java.awaitExit()).as(java.text()).isOne();
        assertThat(java.text())
                .contains("pingpong " + kind + ": ", message)
                .hasLineCount(2) // the device's own is the other
                .doesNotContain("connect");
        assertThat(c.awaitExit()).isOne();
        assertThat(c.text()).contains(cMessage).doesNotContain("connect");
    }

    @ParameterizedTest
    @CsvSource({
        "-j -o, DM memory region can't be on demand",
        "-j -O, DM memory region can't be on demand",
        "-P, prefetch is valid only with on-demand memory region",
        "-P -j, prefetch is valid only with on-demand memory region",
    })
    void refusesCombinationsAsCDoes(String options, String cMessage) throws Exception {
        StringWriter err = new StringWriter();
        int exitCode = Main.commandLine("pingpong")
                .setErr(new PrintWriter(err, true))
                .execute(with(options, "pingpong", "rc"));
        assertThat(exitCode).isEqualTo(2);
        assertThat(err.toString())
                .contains(options.contains("P") ? "-P (--prefetch) is for" : "-j (--dm) cannot be combined");
        Side c = device.c("rc", options.split(" "));
        assertThat(c.awaitExit()).isOne();
        assertThat(c.text()).contains(cMessage);
    }

    @ParameterizedTest
    @ValueSource(strings = {"rc", "uc", "ud", "srq", "xsrq"})
    void hasTheOptionsOfC(String kind) throws Exception {
        // C says how it is used, and ends, when it does not know an option. It needs no device for that.
        Process c;
        try {
            c = new ProcessBuilder("ibv_" + kind + "_pingpong", "--no-such-option")
                    .redirectError(ProcessBuilder.Redirect.DISCARD)
                    .start();
        } catch (IOException missing) {
            Assumptions.abort("ibverbs-utils is not installed");
            return;
        }
        List<String> theirs = c.inputReader()
                .lines()
                .filter(line -> line.matches(" *-\\w, --.*"))
                .map(line -> line.strip().split("[=\\s]+", 3))
                .map(words -> words[0] + " " + words[1])
                .toList();
        assertThat(theirs).hasSizeGreaterThan(9);
        List<String> ours = Main.commandLine("pingpong")
                .getSubcommands()
                .get("pingpong")
                .getSubcommands()
                .get(kind)
                .getCommandSpec()
                .options()
                .stream()
                .filter(option -> !List.of("-h", "--version", "--json").contains(option.names()[0]))
                .map(option -> option.names()[0] + ", " + option.names()[1])
                .toList();
        assertThat(ours).containsExactlyInAnyOrderElementsOf(theirs);
    }

    @Test
    void countsCyclesAcrossTheEndOfTheClock() {
        StringWriter out = new StringWriter();
        ReceiveClock clock = new ReceiveClock(0xff);
        clock.report(new PrintWriter(out, true));
        clock.received(250);
        clock.report(new PrintWriter(out, true));
        assertThat(out.toString()).isEmpty();
        clock.received(4);
        clock.received(4);
        clock.received(3);
        clock.report(new PrintWriter(out, true));
        assertThat(out.toString().lines())
                .containsExactly(
                        "Max receive completion clock cycles = 255",
                        "Min receive completion clock cycles = 0",
                        "Average receive completion clock cycles = 88.333333");
    }

    @Test
    void countsCyclesOfAllSixtyFourBits() {
        StringWriter out = new StringWriter();
        ReceiveClock clock = new ReceiveClock(-1);
        clock.received(1);
        clock.received(0);
        clock.received(10);
        clock.report(new PrintWriter(out, true));
        assertThat(out.toString().lines().limit(2))
                .containsExactly(
                        "Max receive completion clock cycles = 18446744073709551615",
                        "Min receive completion clock cycles = 10");
    }
}
