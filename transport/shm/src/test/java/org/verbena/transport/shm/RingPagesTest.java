package org.verbena.transport.shm;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.shm.ShmFixture.Pair;
import org.verbena.transport.spi.MemoryDomain.Access;
import org.verbena.transport.spi.RegisteredMemory;
import org.verbena.transport.spi.WorkRequest;

/** How much of its rings a connection keeps in memory. */
@Timeout(120)
class RingPagesTest {

    /** Two pages for the positions, and a few for the data of each direction. */
    private static final long FEW_KIB = 64;

    private static void ping(Pair pair, RegisteredMemory memory, int messages, int bytes) {
        for (int i = 0; i < messages; i++) {
            pair.server().receive(i, memory, 0, bytes);
            WorkRequest send = new WorkRequest(1).asSend(i, 0);
            send.buffers().add(memory, 0, bytes);
            pair.client().send(send);
            pair.client().awaitSend();
            pair.server().awaitReceive();
        }
    }

    @Test
    void oneMessageAtATimeUsesAFewPages() throws IOException {
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS)) {
            Pair pair = fixture.connect();
            RegisteredMemory memory = fixture.region(4096, Access.LOCAL_WRITE);
            ping(pair, memory, 4096, 64);
            ping(pair, memory, 256, 4096);
            assertThat(residentKib())
                    .as("KiB of the rings in memory, as each end has mapped them")
                    .hasSize(2)
                    .allSatisfy(kib -> assertThat(kib).isLessThanOrEqualTo(FEW_KIB));
            pair.client().awaitPrepared().disconnect();
        }
    }

    /** Of each mapping of a ring. */
    private static List<Long> residentKib() throws IOException {
        List<Long> found = new ArrayList<>();
        boolean isRing = false;
        for (String line : Files.readAllLines(Path.of("/proc/self/smaps"))) {
            if (line.matches("[0-9a-f]+-[0-9a-f]+ .*")) {
                isRing = line.contains("memfd:verbena (deleted)");
            } else if (isRing && line.startsWith("Rss:")) {
                found.add(Long.parseLong(line.replaceAll("\\D", "")));
            }
        }
        return found;
    }
}
