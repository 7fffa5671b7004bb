package org.verbena.transport.shm;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.shm.ShmFixture.Pair;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RecordingEndpointHandler.Completion;
import org.verbena.transport.spi.WorkRequest;

/** Mappings grow with processes and their files, and not with connections. */
@Timeout(240)
class SharedMappingsTest {
    private static final int CONNECTIONS = 200;
    private static final int FILES = 20;

    /** Enough for a connection to be told of a file, and to use it. */
    private static final int ROUNDS = 4;

    private static void readAll(Pair pair, List<RegisteredMemory> files, RegisteredMemory to) {
        for (int round = 0; round < ROUNDS; round++) {
            pair.client().run(endpoint -> {
                for (RegisteredMemory from : files) {
                    WorkRequest read = new WorkRequest(1).asRead(1, 0, from.address(), from.remoteKey());
                    read.buffers().add(to, 0, 8);
                    assertThat(pair.client().post(endpoint, read)).isTrue();
                }
                endpoint.flush();
            });
            assertThat(pair.client().awaitSends(files.size()))
                    .extracting(Completion::status)
                    .containsOnly(WorkStatus.SUCCESS);
        }
    }

    private static long mappings() {
        try (Stream<String> maps = Files.lines(Path.of("/proc/self/maps"))) {
            return maps.filter(line -> line.contains("verbena-buffers")).count();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @Test
    void connectionsShareTheMappingsOfTheirPeersFiles() {
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS)) {
            List<RegisteredMemory> files = new ArrayList<>();
            for (int i = 0; i < FILES; i++) {
                files.add(fixture.shared(fixture.provider.memoryDomain(), 4096, Access.REMOTE_READ));
            }
            RegisteredMemory to = fixture.region(8, Access.LOCAL_WRITE);
            Patience.until("only the owner's are there, and none of earlier tests", () -> mappings() == FILES);
            List<Pair> pairs = new ArrayList<>();
            for (int i = 0; i < CONNECTIONS; i++) {
                Pair pair = fixture.connect();
                pairs.add(pair);
                readAll(pair, files, to);
            }
            Patience.until("the last connection reads all by itself", () -> {
                readAll(pairs.getLast(), files, to);
                return mappings() >= 2 * FILES;
            });
            assertThat(mappings())
                    .as("of %d files, for %d connections", FILES, CONNECTIONS)
                    .isEqualTo(2 * FILES);
            pairs.forEach(pair -> pair.client().awaitPrepared().disconnect());
            Patience.until("the last connection has unmapped them", () -> mappings() == FILES);
        }
    }
}
