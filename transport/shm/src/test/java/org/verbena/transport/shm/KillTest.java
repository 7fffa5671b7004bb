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
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.WorkRequest;

/**
 * Peers that are killed while they send. {@code -Dverbena.shm.kills=1000} kills as many on each side, which takes as
 * many JVMs.
 */
@Timeout(3600)
class KillTest {
    private static final int KILLS = Integer.getInteger("verbena.shm.kills", 3);

    /** So many share a doorbell. */
    private static final int CONNECTIONS = 3;

    @TempDir
    Path directory;

    private final List<Process> processes = new ArrayList<>();

    @Test
    void aClientThatIsKilledLeavesNothing() throws Exception {
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS.withDirectory(owned()))) {
            Resources before = null;
            for (int i = 0; i < KILLS; i++) {
                AtomicLong received = new AtomicLong();
                RegisteredMemory memory = fixture.region(4096, Access.LOCAL_WRITE);
                Process client =
                        start("client", String.valueOf(fixture.address.getPort()), String.valueOf(CONNECTIONS));
                List<RecordingEndpointHandler> servers = new ArrayList<>();
                for (int j = 0; j < CONNECTIONS; j++) {
                    servers.add(fixture.accept(handler -> countReceives(handler, memory, received)));
                }
                kill(client, received);
                for (RecordingEndpointHandler server : servers) {
                    assertThat(server.awaitDisconnected()).isInstanceOf(ConnectionException.Lost.class);
                }
                before = compare(before);
            }
        }
    }

    @Test
    void aServerThatIsKilledLeavesNothing() throws Exception {
        Path names = owned();
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS.withDirectory(names))) {
            Resources before = null;
            for (int i = 0; i < KILLS; i++) {
                Process server = start("server");
                AtomicLong received = new AtomicLong();
                RegisteredMemory memory = fixture.region(4096, Access.LOCAL_WRITE);
                InetSocketAddress address =
                        new InetSocketAddress(InetAddress.getLoopbackAddress(), ShmChild.awaitPort(server));
                List<RecordingEndpointHandler> clients = new ArrayList<>();
                for (int j = 0; j < CONNECTIONS; j++) {
                    clients.add(fixture.connect(address, handler -> countReceives(handler, memory, received)));
                }
                clients.forEach(RecordingEndpointHandler::awaitConnected);
                kill(server, received);
                for (RecordingEndpointHandler client : clients) {
                    assertThat(client.awaitDisconnected()).isInstanceOf(ConnectionException.Lost.class);
                }
                RecordingEndpointHandler late = fixture.connect(address, handler -> {});
                assertThat(late.awaitDisconnected()).isInstanceOf(ConnectionException.Rejected.class);
                // Its socket's name is there still, and in nobody's way.
                assertThat(names(names)).contains(address.getPort() + "-7f000001");
                fixture.provider.bind(address).close();
                assertThat(names(names)).doesNotContain(address.getPort() + "-7f000001");
                before = compare(before);
            }
        }
    }

    private Process start(String... arguments) throws IOException {
        Process started = ShmChild.start(owned(), arguments);
        processes.add(started);
        return started;
    }

    @AfterEach
    void killTheRest() {
        processes.forEach(Process::destroyForcibly);
    }

    private Path owned() throws IOException {
        Path path = directory.resolve("d");
        SocketDirectory opened = SocketDirectory.open(path);
        assert opened != null;
        return path;
    }

    private static List<String> names(Path directory) throws IOException {
        try (Stream<Path> files = Files.list(directory)) {
            return files.map(file -> file.getFileName().toString()).toList();
        }
    }

    private static void countReceives(RecordingEndpointHandler handler, RegisteredMemory memory, AtomicLong received) {
        handler.whenPrepared(endpoint -> {
            for (int i = 0; i < 64; i++) {
                post(handler, endpoint, memory);
            }
        });
        handler.whenReceived((endpoint, completion) -> {
            received.incrementAndGet();
            post(handler, endpoint, memory);
        });
        // So some are under way when the process ends: each completes, which the fixture checks.
        handler.whenConnected(endpoint -> send(handler, endpoint, memory));
        handler.whenSent((endpoint, completion) -> {
            if (completion.status() == WorkStatus.SUCCESS) {
                send(handler, endpoint, memory);
            }
        });
    }

    private static void send(RecordingEndpointHandler handler, Endpoint endpoint, RegisteredMemory memory) {
        WorkRequest request = new WorkRequest(1).asSend(2, 0);
        request.buffers().add(memory, 0, 4096);
        boolean unused = handler.post(endpoint, request);
        endpoint.flush();
    }

    private static void post(RecordingEndpointHandler handler, Endpoint endpoint, RegisteredMemory memory) {
        boolean unused = handler.postReceive(endpoint, 1, new ScatterGatherList(1).add(memory, 0, 4096));
    }

    private static void kill(Process process, AtomicLong received) throws InterruptedException {
        long enough = ThreadLocalRandom.current().nextLong(10, 5_000);
        Patience.until("messages come", () -> received.get() > enough || !process.isAlive());
        process.destroyForcibly().waitFor();
    }

    /** What a connection of the process could leave. */
    private record Resources(long descriptors, long mappings) {}

    /** The first time is what counts: classes are loaded, pools filled. */
    private static Resources compare(Resources before) {
        if (before == null) {
            return resources();
        }
        Patience.until("descriptors and mappings are gone", () -> {
            Resources now = resources();
            return now.descriptors <= before.descriptors && now.mappings <= before.mappings;
        });
        return before;
    }

    private static Resources resources() {
        try (Stream<Path> open = Files.list(Path.of("/proc/self/fd"));
                Stream<String> maps = Files.lines(Path.of("/proc/self/maps"))) {
            return new Resources(
                    open.count(),
                    maps.filter(line -> line.contains("memfd:verbena")).count());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
