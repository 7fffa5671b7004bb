package org.verbena.it.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.verbena.transport.spi.Patience;

/** What an idle channel takes on a device, its posted receives included, and what window it has for that. */
@Timeout(300)
class IdleChannelsTest {
    private static final int CHANNELS = 300;
    private static final long MAX_BYTES = 16 << 10;
    private static final long MIN_WINDOW = 8;

    @TempDir
    Path folder;

    @Test
    void anIdleChannelHasAWindowOfEightWithin16KiB() throws Exception {
        Path library = StubLibrary.compile(folder, "bench/src/main/c/linked_rdma.c");
        Process process = new ProcessBuilder(List.of(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "--enable-native-access=ALL-UNNAMED",
                        "--sun-misc-unsafe-memory-access=allow",
                        "-XX:TieredStopAtLevel=1",
                        "-Xmx256m",
                        "-Dorg.verbena.verbs.library=" + library,
                        "-Dorg.verbena.cm.library=" + library,
                        "-cp",
                        System.getProperty("java.class.path"),
                        IdleChannels.class.getName(),
                        "verbs",
                        "10.0.0.1",
                        String.valueOf(CHANNELS)))
                .redirectErrorStream(true)
                .start();
        try (BufferedReader output = process.inputReader()) {
            String line = output.readLine();
            while (line != null && !line.startsWith("idle ")) {
                System.out.println(line);
                line = output.readLine();
            }
            assertThat(line).as("what the process says").isNotNull();
            String[] figures = line.split(" ");
            long heapBytes = Long.parseLong(figures[1]);
            long registeredBytes = Long.parseLong(figures[2]);
            long window = Long.parseLong(figures[3]);
            System.out.printf(
                    "an idle channel on verbs: %d bytes of heap, %d bytes of registered memory, a window of %d%n",
                    heapBytes, registeredBytes, window);
            assertThat(heapBytes + registeredBytes).isLessThanOrEqualTo(MAX_BYTES);
            assertThat(window).as("frames that the peer takes").isGreaterThanOrEqualTo(MIN_WINDOW);
            assertThat(process.waitFor(Patience.LIMIT.toMillis(), TimeUnit.MILLISECONDS))
                    .isTrue();
        } finally {
            process.destroyForcibly();
        }
    }
}
