package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.lang.management.ManagementFactory;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

class SoftLargestMessageTest {
    /** The message twice, and a JVM. */
    private static final long NEEDED_BYTES = 6L << 30;

    @Test
    @Timeout(240)
    void aMessageOfTwoGibibytesArrives() throws Exception {
        long free = ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getFreeMemorySize();
        assumeTrue(free > NEEDED_BYTES, () -> "needs " + NEEDED_BYTES + " bytes of free memory, there are " + free);
        int bytes = Integer.MAX_VALUE;
        Process process = TrafficPeer.java(
                List.of(
                        "-Xmx256m",
                        "-XX:MaxDirectMemorySize=2200m",
                        "-Dorg.verbena.buffers.maxRegisteredBytes=" + (3L << 30)),
                OneMessage.class,
                "soft",
                "127.0.0.1",
                String.valueOf(bytes),
                "false");
        try (BufferedReader output = process.inputReader()) {
            String line = output.lines()
                    .filter(each -> each.startsWith("sent "))
                    .findFirst()
                    .orElse("the process ended");
            assertThat(line)
                    .matches(
                            "sent (" + bytes
                                    + " bytes with \\p{XDigit}+), came \\1, keys of the receiver 0, keys of the sender 1, rendezvous 1");
        } finally {
            process.destroyForcibly();
        }
    }
}
