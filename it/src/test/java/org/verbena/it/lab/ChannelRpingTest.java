package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.verbena.tools.interop.rping.ChannelRping;
import org.verbena.transport.spi.Patience;

/**
 * rping on the Channel API with C's, both ways: on verbs over each device, and on the soft provider against the
 * kernel's iWARP.
 */
@Tag("lab")
@Timeout(350)
class ChannelRpingTest {
    private static final int COUNT = 50;
    private static final Duration LIMIT = Patience.LIMIT;
    private static final AtomicInteger NEXT_PORT = new AtomicInteger(7600);
    private static final PrintWriter NOWHERE = new PrintWriter(PrintWriter.nullWriter());

    static List<Arguments> ways() {
        return ways(65535);
    }

    static List<Arguments> otherWays() {
        return ways(64);
    }

    private static List<Arguments> ways(int sizeBytes) {
        return List.of(
                Arguments.of("verbs", LabDevice.RXE, sizeBytes),
                Arguments.of("verbs", LabDevice.SIW, sizeBytes),
                Arguments.of("soft", LabDevice.SIW, sizeBytes));
    }

    @Tag("lab-full")
    @ParameterizedTest(name = "{0} on {1}, {2} bytes")
    @MethodSource("otherWays")
    void channelsServeCInSmallPieces(String provider, LabDevice device, int sizeBytes) throws Exception {
        channelsServeC(provider, device, sizeBytes);
    }

    @ParameterizedTest(name = "{0} on {1}, {2} bytes")
    @MethodSource("ways")
    void channelsServeC(String provider, LabDevice device, int sizeBytes) throws Exception {
        String port = String.valueOf(NEXT_PORT.incrementAndGet());
        StringWriter said = new StringWriter();
        ChannelRping server = new ChannelRping(provider, sizeBytes, new PrintWriter(said, true), false);
        FutureTask<Void> serving = new FutureTask<>(() -> {
            server.serve(new InetSocketAddress(device.address(), Integer.parseInt(port)), false);
            return null;
        });
        Thread.ofPlatform().daemon().name("rping server").start(serving);
        // The first time, all that a channel needs is loaded: slow in the guest.
        long deadline = System.nanoTime() + LIMIT.toNanos();
        while (!said.toString().contains("listens on") && !serving.isDone() && System.nanoTime() < deadline) {
            Patience.sleep(20);
        }
        if (serving.isDone()) {
            serving.get();
        }
        assertThat(said.toString()).contains("listens on");
        PeerProgram.run(
                LIMIT, "rping", "-c", "-a", device.address(), "-p", port, "-C", "" + COUNT, "-V", "-S", "" + sizeBytes);
        serving.get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS);
    }

    @Tag("lab-full")
    @ParameterizedTest(name = "{0} on {1}, {2} bytes")
    @MethodSource("otherWays")
    void cServesChannelsInSmallPieces(String provider, LabDevice device, int sizeBytes) throws Exception {
        cServesChannels(provider, device, sizeBytes);
    }

    @ParameterizedTest(name = "{0} on {1}, {2} bytes")
    @MethodSource("ways")
    void cServesChannels(String provider, LabDevice device, int sizeBytes) throws Exception {
        int port = NEXT_PORT.incrementAndGet();
        try (PeerProgram server =
                PeerProgram.start("rping", "-s", "-a", device.address(), "-p", "" + port, "-S", "" + sizeBytes)) {
            server.awaitListening(port);
            new ChannelRping(provider, sizeBytes, NOWHERE, false)
                    .ping(null, new InetSocketAddress(device.address(), port), COUNT, true);
            assertThat(server.awaitExit(Patience.LIMIT)).isZero();
        }
    }
}
