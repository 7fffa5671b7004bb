package org.verbena.transport.shm;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.WorkRequest;

/** What many connections with one other process cost: wake-ups, mappings, descriptors and memory. */
@Timeout(120)
class ManyConnectionsTest {
    private static final int MESSAGE_BYTES = 64;
    private static final int WINDOW = 4;
    private static final long MESSAGES = 10_000;

    /** Connections that come up at the same time: fewer than the listener's backlog. */
    private static final int CONNECTS = 64;

    /** What connections with one process have in common. */
    private static final int SHARED_FILES = 8;

    @TempDir
    Path directory;

    private final AtomicLong left = new AtomicLong();
    private final AtomicLong underWay = new AtomicLong();
    private final List<RecordingEndpointHandler> clients = new ArrayList<>();
    private Process echo;

    @AfterEach
    void kill() {
        echo.destroyForcibly();
    }

    @Test
    void costsGrowWithProcesses() throws IOException {
        Path names = directory.resolve("d");
        echo = ShmChild.start(names, "echo");
        InetSocketAddress server = new InetSocketAddress(InetAddress.getLoopbackAddress(), ShmChild.awaitPort(echo));
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS.withDirectory(names))) {
            RegisteredMemory memory = fixture.region(2 * MESSAGE_BYTES, Access.LOCAL_WRITE);
            long descriptorsBefore = descriptors();
            for (int connections : new int[] {1, 100, 1000}) {
                connect(fixture, server, memory, connections);
                run(fixture, memory, 1, connections); // each has rung once
                assertOneWakeUpForASleep(fixture, memory);
                assertResources(fixture, descriptorsBefore);
            }
            clients.forEach(client -> client.awaitPrepared().disconnect());
            clients.forEach(RecordingEndpointHandler::awaitDisconnected);
            Patience.until(
                    "nothing is left of them",
                    () -> rings(new ArrayList<>(), new ArrayList<>()) == 0
                            && descriptors() <= descriptorsBefore + SHARED_FILES);
        }
    }

    private void connect(ShmFixture fixture, InetSocketAddress server, RegisteredMemory memory, int connections) {
        while (clients.size() < connections) {
            int batch = Math.min(CONNECTS, connections - clients.size());
            for (int i = 0; i < batch; i++) {
                clients.add(fixture.connect(server, handler -> {
                    handler.whenPrepared(endpoint -> {
                        for (int j = 0; j < 2 * WINDOW; j++) {
                            receive(handler, endpoint, memory);
                        }
                    });
                    handler.whenReceived((endpoint, completion) -> {
                        receive(handler, endpoint, memory);
                        if (left.getAndDecrement() > 0) {
                            send(handler, endpoint, memory);
                        } else {
                            underWay.decrementAndGet();
                        }
                    });
                }));
            }
            clients.subList(clients.size() - batch, clients.size()).forEach(RecordingEndpointHandler::awaitConnected);
        }
    }

    private static void receive(RecordingEndpointHandler handler, Endpoint endpoint, RegisteredMemory memory) {
        ScatterGatherList list = new ScatterGatherList(1).addHeld(memory, 0, MESSAGE_BYTES);
        assertThat(handler.postReceive(endpoint, 1, list)).isTrue();
    }

    private static void send(RecordingEndpointHandler handler, Endpoint endpoint, RegisteredMemory memory) {
        WorkRequest request = new WorkRequest(1).asSend(1, 0);
        request.buffers().addHeld(memory, MESSAGE_BYTES, MESSAGE_BYTES);
        assertThat(handler.post(endpoint, request)).isTrue();
    }

    /** Has so many messages go to and fro on each connection at a time, and waits for the last. */
    private void run(ShmFixture fixture, RegisteredMemory memory, int window, long messages) {
        long atOnce = (long) window * clients.size();
        left.set(messages - atOnce);
        underWay.set(atOnce);
        for (RecordingEndpointHandler client : clients) {
            client.run(endpoint -> {
                for (int i = 0; i < window; i++) {
                    send(client, endpoint, memory);
                }
                endpoint.flush();
            });
        }
        Patience.until("all have come back", () -> underWay.get() == 0);
        Patience.turns(fixture.clientLoop());
    }

    private void assertOneWakeUpForASleep(ShmFixture fixture, RegisteredMemory memory) throws IOException {
        ShmIoHandler.Work before = fixture.work(fixture.clientLoop());
        ShmIoHandler.Work peerBefore = ShmChild.work(echo, false);
        run(fixture, memory, WINDOW, MESSAGES);
        ShmIoHandler.Work after = fixture.work(fixture.clientLoop());
        ShmIoHandler.Work peerAfter = ShmChild.work(echo, false);
        long wakeUps = after.wakeUps() - before.wakeUps();
        long sleeps = after.sleeps() - before.sleeps();
        long peerWakeUps = peerAfter.wakeUps() - peerBefore.wakeUps();
        long peerSleeps = peerAfter.sleeps() - peerBefore.sleeps();
        System.out.printf(
                "%d connections, %d messages: %d wake-ups for %d sleeps, and back %d for %d%n",
                clients.size(), MESSAGES, wakeUps, peerSleeps, peerWakeUps, sleeps);
        // One sleep may have begun before the first look at the counters.
        assertThat(wakeUps).as("wake-ups of the other process").isLessThanOrEqualTo(peerSleeps + 1);
        assertThat(peerWakeUps).as("wake-ups by the other process").isLessThanOrEqualTo(sleeps + 1);
    }

    private void assertResources(ShmFixture fixture, long descriptorsBefore) throws IOException {
        // Both ends give back what they used of their rings.
        for (int i = 0; i < 2; i++) {
            fixture.tick();
            ShmIoHandler.Work unused = ShmChild.work(echo, true);
        }
        List<Long> ringKib = new ArrayList<>();
        List<Long> otherKib = new ArrayList<>();
        long rings = rings(ringKib, otherKib);
        System.out.printf(
                "%d connections: %d KiB in memory of %d rings, %s of other files%n",
                clients.size(), ringKib.stream().mapToLong(kib -> kib).sum(), rings, otherKib);
        assertThat(rings).as("mappings of rings").isEqualTo(clients.size());
        assertThat(ringKib)
                .as("KiB in memory of each ring, which both processes share")
                .allSatisfy(kib -> assertThat(kib).isLessThanOrEqualTo(RingPagesTest.IDLE_KIB));
        assertThat(otherKib).as("KiB in memory of other files").hasSizeLessThanOrEqualTo(SHARED_FILES);
        assertThat(otherKib.stream().mapToLong(kib -> kib).sum())
                .as("their sum")
                .isLessThanOrEqualTo(64);
        assertThat(descriptors() - descriptorsBefore)
                .as("descriptors of %d connections", clients.size())
                .isLessThanOrEqualTo(clients.size() + SHARED_FILES);
    }

    private static long descriptors() {
        try (Stream<Path> open = Files.list(Path.of("/proc/self/fd"))) {
            return open.count();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Finds how much of each mapped file is in memory; returns the number of rings. */
    private static long rings(List<Long> ringKib, List<Long> otherKib) {
        ringKib.addAll(RingPagesTest.residentKib(name -> name.equals(RingPagesTest.RING)));
        otherKib.addAll(RingPagesTest.residentKib(
                name -> name.startsWith("/memfd:verbena") && !name.equals(RingPagesTest.RING)));
        return ringKib.size();
    }
}
