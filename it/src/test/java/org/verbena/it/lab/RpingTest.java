package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.verbena.samples.command.CommandFailure;
import org.verbena.tools.interop.rping.RpingClient;
import org.verbena.tools.interop.rping.RpingServer;
import org.verbena.transport.spi.Patience;

/**
 * Our rping with C's, both ways, and with itself: validated pings of the smallest and the largest size, and in the full
 * run a thousand of each. The Java ends run in this JVM, which spares the guest some thirty JVM starts; the command
 * line around them is tested without devices.
 */
@Tag("lab")
@Timeout(350)
class RpingTest {
    /** Enough for buffers and queues to come round several times. */
    private static final int COUNT = 25;

    private static final int FULL_COUNT = 1000;
    private static final Duration LIMIT = Patience.LIMIT;

    /** C's rping takes sizes up to one less than the 65536 that its usage tells of. */
    private static final int LARGEST_OF_C = 65535;

    private static final AtomicInteger NEXT_PORT = new AtomicInteger(7400);

    private static final PrintWriter NOWHERE = new PrintWriter(PrintWriter.nullWriter());

    static List<Arguments> ways() {
        return ways(64, 65536);
    }

    static List<Arguments> allWays() {
        return ways(64, 4096, 65536);
    }

    private static List<Arguments> ways(int... sizesBytes) {
        List<Arguments> ways = new ArrayList<>();
        for (int sizeBytes : sizesBytes) {
            ways.add(Arguments.of("rxe IPv4", LabDevice.RXE.address(), sizeBytes));
            ways.add(Arguments.of("rxe IPv6", LabDevice.RXE.ipv6Address(), sizeBytes));
            ways.add(Arguments.of("siw IPv4", LabDevice.SIW.address(), sizeBytes));
        }
        return ways;
    }

    private static <T> FutureTask<T> start(String name, Callable<T> work) {
        FutureTask<T> task = new FutureTask<>(work);
        Thread.ofPlatform().daemon().name(name).start(task);
        return task;
    }

    private static FutureTask<Void> startServing(RpingServer server) {
        return start("rping server", () -> {
            server.serveOne();
            return null;
        });
    }

    private static RpingServer listen(String address, int port, int sizeBytes) {
        RpingServer server = new RpingServer(new InetSocketAddress(address, port), sizeBytes, false, NOWHERE, false);
        server.listen();
        return server;
    }

    private static RpingClient client(String address, int port, int sizeBytes, int count) {
        return new RpingClient(
                null, new InetSocketAddress(address, port), sizeBytes, count, true, false, NOWHERE, false);
    }

    @ParameterizedTest(name = "{0}, {2} bytes")
    @MethodSource("ways")
    void javaServesC(String name, String address, int sizeBytes) throws Exception {
        serveC(address, sizeBytes, COUNT);
    }

    private static void serveC(String address, int sizeBytes, int count) throws Exception {
        int port = NEXT_PORT.incrementAndGet();
        String size = String.valueOf(Math.min(sizeBytes, LARGEST_OF_C));
        try (RpingServer server = listen(address, port, sizeBytes)) {
            FutureTask<Void> serving = startServing(server);
            PeerProgram.run(LIMIT, "rping", "-c", "-a", address, "-p", "" + port, "-C", "" + count, "-V", "-S", size);
            serving.get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS);
        }
    }

    @ParameterizedTest(name = "{0}, {2} bytes")
    @MethodSource("ways")
    void cServesJava(String name, String address, int sizeBytes) {
        visitC(address, sizeBytes, COUNT);
    }

    private static void visitC(String address, int sizeBytes, int count) {
        int port = NEXT_PORT.incrementAndGet();
        int size = Math.min(sizeBytes, LARGEST_OF_C);
        try (PeerProgram server = PeerProgram.start("rping", "-s", "-a", address, "-p", "" + port, "-S", "" + size)) {
            server.awaitListening(port);
            client(address, port, size, count).run();
            assertThat(server.awaitExit(Patience.LIMIT)).isZero();
        }
    }

    /** The size that C's does not take. */
    @ParameterizedTest
    @EnumSource
    void javaServesJava(LabDevice device) throws Exception {
        serveJava(device.address(), 65536, COUNT);
    }

    private static void serveJava(String address, int sizeBytes, int count) throws Exception {
        int port = NEXT_PORT.incrementAndGet();
        try (RpingServer server = listen(address, port, sizeBytes)) {
            FutureTask<Void> serving = startServing(server);
            client(address, port, sizeBytes, count).run();
            serving.get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS);
        }
    }

    @Tag("lab-full")
    @ParameterizedTest(name = "{0}, {2} bytes")
    @MethodSource("allWays")
    void aThousandPingsEachWay(String name, String address, int sizeBytes) throws Exception {
        serveC(address, sizeBytes, FULL_COUNT);
        visitC(address, sizeBytes, FULL_COUNT);
        serveJava(address, sizeBytes, FULL_COUNT);
    }

    @Test
    void aPersistentServerServesSeveralAtOnce() throws Exception {
        String address = LabDevice.RXE.address();
        int port = NEXT_PORT.incrementAndGet();
        try (RpingServer server = listen(address, port, 4096)) {
            Thread accepting = Thread.ofPlatform()
                    .daemon()
                    .name("rping persistent server")
                    .start(() -> {
                        try {
                            server.serveAll();
                        } catch (RuntimeException interrupted) {
                            // The test is over.
                        }
                    });
            List<FutureTask<Void>> clients = new ArrayList<>();
            for (int i = 0; i < 3; i++) {
                clients.add(start("rping client " + i, () -> {
                    client(address, port, 4096, 200).run();
                    return null;
                }));
            }
            PeerProgram.run(LIMIT, "rping", "-c", "-a", address, "-p", "" + port, "-C", "200", "-V", "-S", "4096");
            for (FutureTask<Void> client : clients) {
                client.get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS);
            }
            accepting.interrupt();
            accepting.join(Patience.LIMIT.toMillis());
            assertThat(accepting.isAlive()).isFalse();
            awaitNoThreads("rping-CmId");
        }
    }

    private static void awaitNoThreads(String prefix) throws InterruptedException {
        for (Thread thread : Thread.getAllStackTraces().keySet()) {
            if (thread.getName().startsWith(prefix)) {
                thread.join(Patience.LIMIT.toMillis());
                assertThat(thread.isAlive()).as(thread.getName()).isFalse();
            }
        }
    }

    /** Both sides make their queue pairs themselves, and change their states. iWARP's kernel does that. */
    @Test
    void queuePairsOfTheProgramsOwn() throws Exception {
        String address = LabDevice.RXE.address();
        int servedByUs = NEXT_PORT.incrementAndGet();
        try (RpingServer server =
                new RpingServer(new InetSocketAddress(address, servedByUs), 64, true, NOWHERE, false)) {
            server.listen();
            FutureTask<Void> serving = startServing(server);
            PeerProgram.run(LIMIT, "rping", "-c", "-a", address, "-p", "" + servedByUs, "-C", "10", "-V", "-q");
            serving.get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS);
        }
        int servedByC = NEXT_PORT.incrementAndGet();
        try (PeerProgram server = PeerProgram.start("rping", "-s", "-a", address, "-p", "" + servedByC, "-q")) {
            server.awaitListening(servedByC);
            new RpingClient(null, new InetSocketAddress(address, servedByC), 64, 10, true, true, NOWHERE, false).run();
            assertThat(server.awaitExit(Patience.LIMIT)).isZero();
        }
        assertThatExceptionOfType(CommandFailure.class)
                .isThrownBy(() -> {
                    int silent = NEXT_PORT.incrementAndGet();
                    InetSocketAddress iwarp = new InetSocketAddress(LabDevice.SIW.address(), silent);
                    new RpingClient(null, iwarp, 64, 1, true, true, NOWHERE, false).run();
                })
                .withMessage("siw0 is iWARP: the kernel connects its queue pairs. Leave out -q");
    }

    @Test
    void printsThePingsThatCSends() throws Exception {
        String address = LabDevice.RXE.address();
        int port = NEXT_PORT.incrementAndGet();
        StringWriter printed = new StringWriter();
        try (RpingServer server =
                new RpingServer(new InetSocketAddress(address, port), 64, false, new PrintWriter(printed), true)) {
            server.listen();
            FutureTask<Void> serving = startServing(server);
            String output = PeerProgram.run(
                    LIMIT, "rping", "-c", "-a", address, "-p", "" + port, "-C", "3", "-V", "-v", "-S", "64");
            serving.get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS);
            assertThat(printed.toString().lines().map(line -> line.replace("server ", "")))
                    .hasSize(3)
                    .containsExactlyElementsOf(output.lines()
                            .filter(line -> line.startsWith("ping data"))
                            .toList());
        }
    }
}
