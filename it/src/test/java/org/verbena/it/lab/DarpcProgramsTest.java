package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** DaRPC's own server and client as Maven Central has them, in JVMs of their own, without DiSNI's C library. */
@Tag("lab")
@Tag("lab-long")
@Tag("lab-full")
@Timeout(350)
class DarpcProgramsTest {
    /** The programs have no other. */
    private static final int PORT = 1919;

    private static final int CALLS = 1000;

    /** A program starts a JVM and loads all of the bindings, in a guest where the first to do so takes a minute. */
    private static final Duration LONG = Duration.ofSeconds(160);

    /**
     * DiSNI asks for no retries and lets nobody change that, so one acknowledgement that soft RoCE sends late in a busy
     * guest ends the connection: "transport retry counter exceeded".
     */
    private static final String NOT_ACKNOWLEDGED = "wc.status 12";

    @ParameterizedTest
    @EnumSource
    void theServerAnswersTheClient(LabDevice device) {
        String output = run(device);
        if (output.contains(NOT_ACKNOWLEDGED)) {
            output = run(device);
        }
        assertThat(output).doesNotContain("Exception");
    }

    /** Returns what all have printed. */
    private static String run(LabDevice device) {
        StringBuilder printed = new StringBuilder();
        try (PeerProgram server =
                PeerProgram.startJava("com.ibm.darpc.examples.server.DaRPCServer", "-a", device.address(), "-p", "1")) {
            server.awaitListening(PORT, LONG);
            for (String mode : new String[] {"future-take", "batch-stream-take"}) {
                try (PeerProgram client = PeerProgram.startJava(
                        "com.ibm.darpc.examples.client.DaRPCClient",
                        "-a",
                        device.address(),
                        "-k",
                        String.valueOf(CALLS),
                        "-m",
                        mode)) {
                    assertThat(client.awaitExit(LONG)).as(client.output()).isZero();
                    assertThat(client.output()).contains("ops " + (double) CALLS);
                    printed.append(client.output());
                }
            }
            return printed.append(server.output()).toString();
        }
    }
}
