package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.sun.management.UnixOperatingSystemMXBean;
import java.io.BufferedReader;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.spi.Patience;

/**
 * A thousand open channels on one server, in a process that has no more than 512 MiB for its heap and for direct and
 * registered memory together. All of them echo. The figures that it prints are the server's; what all channels share,
 * the shared receive queues above all, is not in those of one idle channel. Memory that two processes share is: each
 * has half of it.
 */
public abstract class ManyChannelsSuite {
    /** What the server's process may have. */
    private static final long LIMIT_BYTES = 512L << 20;

    /** What an idle channel may take of heap, and of direct, registered and shared memory, together. */
    private static final long IDLE_CHANNEL_BYTES = 16 << 10;

    /** With one channel, with a hundred and with all. */
    private static final int FRAME_COUNTS = 3;

    /** Frames of requests and their replies for each of these messages. */
    private static final double MAX_FRAMES = 1.1;

    /** Which provider. */
    protected abstract String provider();

    /** Where the server listens. */
    protected String host() {
        return "127.0.0.1";
    }

    /** How many channels. */
    protected int channels() {
        return 1000;
    }

    @Test
    @Timeout(600)
    void aThousandChannelsEchoInHalfAGibibyte() throws Exception {
        Figures server = echo(channels(), true, 240, List.of("-Xmx192m", "-XX:MaxDirectMemorySize=64m"));
        // The heap counts with all that it may have.
        assertThat((192L << 20) + server.directBytes + server.registeredBytes).isLessThan(LIMIT_BYTES);
        assertThat(server.bytesOfAnIdleChannel).isLessThanOrEqualTo(IDLE_CHANNEL_BYTES);
    }

    /** Each channel has receives of its own, and what it sends ahead: all as it is by default. */
    protected final void echoWithDefaults(int channels) throws Exception {
        if (ManagementFactory.getOperatingSystemMXBean() instanceof UnixOperatingSystemMXBean system) {
            long descriptors = system.getMaxFileDescriptorCount();
            assumeTrue(
                    descriptors >= channels + channels / 2,
                    () -> "a process may have " + descriptors + " descriptors only");
        }
        echo(channels, false, 1500, List.of("-Xmx1g"));
    }

    /** What the server's process has in use at the end, and for an idle channel. */
    private record Figures(long directBytes, long registeredBytes, long bytesOfAnIdleChannel) {}

    /** All channels are open, then all echo. */
    private Figures echo(int channels, boolean shares, int maxSeconds, List<String> flags) throws Exception {
        Process server = TrafficPeer.java(
                flags,
                CrowdServer.class,
                provider(),
                host(),
                String.valueOf(channels),
                String.valueOf(shares),
                String.valueOf(maxSeconds));
        Process clients = null;
        try (BufferedReader output = server.inputReader()) {
            int port = Integer.parseInt(after(output, "listening "));
            clients = TrafficPeer.java(
                    List.of(shares ? "-Xmx512m" : "-Xmx1g"),
                    CrowdClients.class,
                    provider(),
                    host(),
                    String.valueOf(port),
                    String.valueOf(channels),
                    String.valueOf(shares));
            try (BufferedReader clientOutput = clients.inputReader()) {
                for (int i = 0; i < FRAME_COUNTS; i++) {
                    String[] counts = after(clientOutput, "frames ").split(" ");
                    long messages = Long.parseLong(counts[1]);
                    long frames = Long.parseLong(counts[2]);
                    System.out.printf(
                            "%s channels on %s: %d frames for %d messages%n", counts[0], provider(), frames, messages);
                    assertThat(frames).as("frames with %s channels", counts[0]).isBetween(messages, (long)
                            (MAX_FRAMES * messages));
                }
                assertThat(after(clientOutput, "echoed ")).isEqualTo(String.valueOf(channels));
            }
            String[] figures = after(output, "figures ").split(" ");
            long heapBytes = Long.parseLong(figures[0]);
            long directBytes = Long.parseLong(figures[1]);
            long registeredBytes = Long.parseLong(figures[2]);
            long heapPerChannel = Long.parseLong(figures[3]);
            long outsidePerChannel = Long.parseLong(figures[4]);
            long sharedPerChannel = Long.parseLong(figures[5]);
            System.out.printf(
                    "%d channels on %s: heap %d KiB, direct %d KiB, registered %d KiB; an idle channel: %d bytes of"
                            + " heap, %d bytes of direct and registered memory, %d bytes of shared memory%n",
                    channels,
                    provider(),
                    heapBytes >> 10,
                    directBytes >> 10,
                    registeredBytes >> 10,
                    heapPerChannel,
                    outsidePerChannel,
                    sharedPerChannel);
            assertThat(server.waitFor(Patience.LIMIT.toMillis(), TimeUnit.MILLISECONDS))
                    .isTrue();
            assertThat(server.exitValue()).isZero();
            return new Figures(directBytes, registeredBytes, heapPerChannel + outsidePerChannel + sharedPerChannel);
        } finally {
            server.destroyForcibly();
            if (clients != null) {
                clients.destroyForcibly();
            }
        }
    }

    private static String after(BufferedReader output, String beginning) throws Exception {
        List<String> others = new ArrayList<>();
        for (String line = output.readLine(); line != null; line = output.readLine()) {
            if (line.startsWith(beginning)) {
                return line.substring(beginning.length());
            }
            others.add(line);
        }
        throw new AssertionError("the process ended without '" + beginning + "': " + others);
    }
}
