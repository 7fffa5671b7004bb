package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.verbena.transport.spi.Patience;

/** {@code verbena perf} on the lab's devices; how it counts is tested on soft. */
@Tag("lab")
@Tag("lab-full")
@Timeout(350)
class PerfTest {
    private static final String PORT = "7702";

    @ParameterizedTest
    @EnumSource
    void measuresOnVerbs(LabDevice device) {
        try (PeerProgram server = PeerProgram.startJava(
                "org.verbena.tools.Main", "perf", "server", "--host", device.address(), "--port", PORT)) {
            server.awaitLine("perf server listens on .*\\(verbs\\)", Patience.LIMIT);
            // A JVM that has just started may load classes for longer than a connection waits.
            Patience.until(
                    "the server serves",
                    () -> client(device, "request,stream", "--csv").exitCode() == 0);
            for (String mode : new String[] {"--lat", "--bw"}) {
                Command client = client(device, "message,request,stream,send,grpc,read,write", mode, "--json");
                System.out.println(client.out());
                assertThat(client.exitCode()).as(client.err()).isZero();
                assertThat(client.out())
                        .contains("\"provider\": \"verbs\"")
                        .contains("\"test\": \"message\"", "\"test\": \"request\"", "\"test\": \"stream\"")
                        .contains("\"test\": \"send\"", "\"test\": \"grpc\"")
                        .contains("\"test\": \"read\"", "\"test\": \"write\"");
            }
            Command ring = client(device, "ring", "--bw", "--size=64,4k", "--csv");
            if (device == LabDevice.RXE) {
                assertThat(ring.exitCode()).as(ring.err()).isZero();
                assertThat(ring.out()).contains("ring,bw,64,1,16,", "ring,bw,4096,1,16,");
            } else {
                assertThat(ring.exitCode()).isOne();
                assertThat(ring.err()).contains("immediate data");
            }
            Command atomics = client(device, "atomic", "--bw", "--csv");
            if (device == LabDevice.RXE) {
                assertThat(atomics.exitCode()).as(atomics.err()).isZero();
                assertThat(atomics.out()).contains("atomic,bw,8,1,16,");
            } else {
                assertThat(atomics.exitCode()).isOne();
                assertThat(atomics.err()).contains("verbs has no atomics here");
            }
            server.terminate();
            assertThat(server.awaitExit(Patience.LIMIT)).as(server.output()).isZero();
        }
    }

    /** Perftest beside it, with whose figures those of perf are to be compared: they are printed. */
    @ParameterizedTest
    @EnumSource
    void comparesWithPerftestAndQperf(LabDevice device) {
        try (PeerProgram server = PeerProgram.startJava(
                "org.verbena.tools.Main",
                "perf",
                "server",
                "--host",
                device.address(),
                "--port",
                PORT,
                "--with",
                "perftest,qperf")) {
            server.awaitLine("perf server listens on .*\\(verbs\\)", Patience.LIMIT);
            Patience.until(
                    "the server serves",
                    () -> client(device, "request", "--csv").exitCode() == 0);
            for (String mode : new String[] {"--lat", "--bw"}) {
                Command perftest = client(device, "send,read", mode, "--size=64,4k", "--against=perftest", "--csv");
                System.out.println(perftest.out());
                assertThat(perftest.exitCode())
                        .as(perftest.out() + perftest.err())
                        .isZero();
                for (String test : new String[] {"send", "read"}) {
                    for (int bytes : new int[] {64, 4096}) {
                        assertThat(perftest.out())
                                .containsPattern("(?m)^" + test + "," + mode.substring(2) + "," + bytes + ",.*,ib_"
                                        + test + "_" + mode.substring(2) + ",.*,\\d+\\.\\d{3}$");
                    }
                }
            }
            // On siw qperf cannot create its queue pair, without perf either.
            String tests = device == LabDevice.RXE ? "read,stream,request" : "stream,request";
            Command qperf = client(device, tests, "--bw", "--size=4k", "--against=qperf", "--csv");
            System.out.println(qperf.out());
            assertThat(qperf.exitCode()).as(qperf.out() + qperf.err()).isZero();
            for (String test : tests.split(",")) {
                assertThat(qperf.out())
                        .containsPattern("(?m)^" + test
                                + (test.equals("request") ? ",bw,.*,qperf,,,,$" : ",bw,.*,qperf,,,.*,\\d+\\.\\d{3}$"));
            }
            server.terminate();
            assertThat(server.awaitExit(Patience.LIMIT)).as(server.output()).isZero();
        }
    }

    private static Command client(LabDevice device, String tests, String... options) {
        List<String> all =
                new ArrayList<>(List.of("perf", "client", device.address(), "--port", PORT, "--test", tests));
        all.addAll(List.of("--duration=0.5", "--warm-up=0.5", "--window=16"));
        all.addAll(List.of(options));
        return Command.run(all.toArray(String[]::new));
    }
}
