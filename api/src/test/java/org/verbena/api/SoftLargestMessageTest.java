package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

class SoftLargestMessageTest {
    /** The message twice, and a JVM. */
    private static final long NEEDED_BYTES = 6L << 30;

    /** What programs can have: the kernel gives up its caches for them, which do not count as free. */
    private static long availableBytes() throws IOException {
        Pattern line = Pattern.compile("MemAvailable: +(\\d+) kB");
        for (String each : Files.readAllLines(Path.of("/proc/meminfo"))) {
            Matcher found = line.matcher(each);
            if (found.matches()) {
                return Long.parseLong(found.group(1)) << 10;
            }
        }
        throw new IOException("no MemAvailable in /proc/meminfo");
    }

    /** Half a minute of a processor. */
    @Tag("full")
    @Test
    @Timeout(240)
    void aMessageOfTwoGibibytesArrives() throws Exception {
        long available = availableBytes();
        assumeTrue(
                available > NEEDED_BYTES,
                () -> "needs " + NEEDED_BYTES + " bytes of available memory, there are " + available);
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
