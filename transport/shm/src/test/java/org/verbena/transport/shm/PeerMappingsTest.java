package org.verbena.transport.shm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.verbena.transport.ffm.MappedMemory;
import org.verbena.transport.shm.ffm.ProcessFiles;
import org.verbena.transport.shm.ffm.SharedFile;
import org.verbena.transport.spi.NoThreads;

/** The files of a process, which is this one. */
@Timeout(240)
class PeerMappingsTest {
    private static final int BYTES = 4096;
    private static final int MOST = 16;

    @TempDir
    Path directory;

    private final PeerMappings mappings = new PeerMappings(MOST, 2);
    private final PeerProcesses processes = new PeerProcesses(mappings);
    private final List<SharedFile> files = new ArrayList<>();
    private PeerProcess process;

    @BeforeEach
    void find() throws IOException {
        process = processes.find(ShmContext.PID);
    }

    @AfterEach
    void releaseAll() {
        process.leave();
        for (SharedFile file : files) {
            file.close();
            MappedMemory.unmap(file.memory());
        }
    }

    private SharedFile create(long lengthBytes) throws IOException {
        SharedFile made = SharedFile.create("verbena-test", lengthBytes, true);
        made.memory().set(ValueLayout.JAVA_INT, 0, files.size());
        files.add(made);
        return made;
    }

    private static int visit(PeerFile file) {
        MemorySegment memory = file.enter();
        assertThat(memory).isNotNull();
        try {
            return memory.get(ValueLayout.JAVA_INT, 0);
        } finally {
            file.exit();
        }
    }

    @Test
    void theOldestMakeRoomAndComeAgain() throws IOException {
        List<PeerFile> found = new ArrayList<>();
        for (int i = 0; i < 5 * MOST; i++) {
            found.add(process.find(create(BYTES).descriptor(), BYTES, false));
        }
        for (int round = 0; round < 3; round++) {
            for (int i = 0; i < found.size(); i++) {
                assertThat(visit(found.get(i))).isEqualTo(i);
                assertThat(mappings.size()).isLessThanOrEqualTo(MOST / 2);
            }
        }
        process.release(found);
        assertThat(mappings.size()).isZero();
    }

    @Test
    void whatAConnectionLeavesIsUnmappedAlsoWithoutAThreadForIt() throws IOException {
        SharedFile file = SharedFile.create("verbena-unmap", BYTES, true);
        files.add(file);
        PeerFile found = process.find(file.descriptor(), BYTES, false);
        assertThat(found.enter()).isNotNull();
        found.exit();
        assertThat(mappingsOf("verbena-unmap"))
                .as("its own, and that of its peer")
                .isEqualTo(2);
        NoThreads.during(() -> process.release(List.of(found)));
        assertThat(mappingsOf("verbena-unmap")).isEqualTo(1);
    }

    private static long mappingsOf(String name) throws IOException {
        try (Stream<String> lines = Files.lines(Path.of("/proc/self/maps"))) {
            return lines.filter(line -> line.contains(name)).count();
        }
    }

    /** Its number may have been given to another file since it was sent. */
    @Test
    void aDoorbellIsMappedOnlyIfItIsTheOneThatWasMeant() throws IOException {
        SharedFile page = SharedFile.create("verbena-test", Doorbell.BYTES, false);
        files.add(page);
        long inode = page.identity().inode();
        assertThatThrownBy(() -> process.openDoorbell(page.descriptor(), inode + 1))
                .isInstanceOf(IOException.class);
        PeerDoorbell found = process.openDoorbell(page.descriptor(), inode);
        assertThat(process.openDoorbell(page.descriptor(), inode)).isSameAs(found);
        process.release(found);
        process.release(found);
    }

    @Test
    void whatIsInUseStaysAndTheRestIsDoneWithout() throws IOException {
        List<PeerFile> found = new ArrayList<>();
        for (int i = 0; i <= MOST / 2; i++) {
            found.add(process.find(create(BYTES).descriptor(), BYTES, false));
        }
        PeerFile last = found.getLast();
        for (int i = 0; i < MOST / 2; i++) {
            assertThat(found.get(i).enter()).isNotNull();
        }
        assertThat(last.enter()).isNull();
        found.getFirst().exit();
        assertThat(visit(last)).isEqualTo(MOST / 2);
        for (int i = 1; i < MOST / 2; i++) {
            found.get(i).exit();
        }
        process.release(found);
        assertThat(mappings.size()).isZero();
    }

    @Test
    void oneFileUnderManyNumbersIsMappedOnce() throws IOException {
        SharedFile file = create(BYTES);
        List<PeerFiles> connections = new ArrayList<>();
        for (int i = 0; i < 16; i++) {
            PeerFiles connection = new PeerFiles(process);
            connections.add(connection);
            for (int number = 0; number < 5000; number++) {
                connection.add(number, file.descriptor(), BYTES, false);
            }
            for (int number = 0; number < 4096; number++) {
                PeerFile found = connection.find(number);
                assertThat(found).isNotNull();
                assertThat(visit(found)).isZero();
            }
            assertThat(connection.find(4999)).as("beyond the limit").isNull();
        }
        assertThat(mappings.size()).isEqualTo(1);
        connections.forEach(PeerFiles::close);
        assertThat(mappings.size()).isZero();
    }

    @Test
    void noPeerFillsTheAddressSpace() throws IOException {
        SharedFile sparse = create(1L << 40);
        PeerFile found = process.find(sparse.descriptor(), 1L << 40, false);
        assertThat(found.enter()).isNull();
        process.release(found);
        List<PeerFile> many = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
            many.add(process.find(create(100L << 30).descriptor(), 100L << 30, false));
            visit(many.getLast());
            assertThat(mappings.size()).isLessThanOrEqualTo(2);
        }
        process.release(many);
    }

    @Test
    void whatIsNotAsItWasSaidIsNotMapped() throws IOException {
        SharedFile file = create(BYTES);
        SharedFile readOnly = create(BYTES);
        for (PeerFile wrong : List.of(
                process.find(file.descriptor(), 2 * BYTES, false), process.find(readOnly.descriptor(), BYTES, true))) {
            assertThat(wrong.enter()).isNull();
            process.release(wrong);
        }
        assertThatThrownBy(() -> process.find(999_999, BYTES, false)).isInstanceOf(IOException.class);
        assertThat(mappings.size()).isZero();
    }

    /** A descriptor that was another file when it was announced, and has become this one. */
    @Test
    void aDescriptorThatHasBecomeAnotherFileIsNotMapped() throws IOException {
        SharedFile before = create(BYTES);
        PeerFile found = process.find(before.descriptor(), BYTES, false);
        before.close();
        // The kernel gives the lowest number; other threads of the JVM may have freed a lower one meanwhile.
        SharedFile after = create(BYTES);
        for (int i = 0; i < 100 && after.descriptor() != before.descriptor(); i++) {
            after = create(BYTES);
        }
        assertThat(after.descriptor()).isEqualTo(before.descriptor());
        assertThat(found.enter()).isNull();
        process.release(found);
    }

    /** To open it would wait until somebody writes. */
    @Test
    void aPipeIsNotOpened() throws Exception {
        Path pipe = directory.resolve("pipe");
        assertThat(new ProcessBuilder("mkfifo", pipe.toString()).start().waitFor())
                .isZero();
        Process holder = new ProcessBuilder(
                        "sh", "-c", "exec 0<>\"$1\"; echo open; exec sleep 100", "sh", pipe.toString())
                .start();
        try (ProcessFiles files = ProcessFiles.of(holder.pid())) {
            assertThat(holder.inputReader().readLine()).isEqualTo("open");
            assertThatThrownBy(() -> files.open(0, BYTES, false)).isInstanceOf(IOException.class);
            assertThatThrownBy(() -> files.open(1, BYTES, true)).isInstanceOf(IOException.class);
        } finally {
            holder.destroyForcibly().waitFor();
        }
    }

    @Test
    void aProcessThatHasEndedHasNothing() throws Exception {
        Process ended = new ProcessBuilder("sleep", "100").start();
        PeerProcess found = processes.find(ended.pid());
        assertThat(found.files().isAlive()).isTrue();
        ended.destroyForcibly().waitFor();
        assertThat(found.files().isAlive()).isFalse();
        assertThatThrownBy(() -> found.find(0, BYTES, false)).isInstanceOf(IOException.class);
        assertThatThrownBy(() -> processes.find(ended.pid())).isInstanceOf(IOException.class);
        found.leave();
    }

    @Test
    void connectionsWithOneProcessShareIt() throws IOException {
        long before = descriptors();
        PeerProcess again = processes.find(ShmContext.PID);
        assertThat(again).isSameAs(process);
        assertThat(descriptors()).isEqualTo(before);
        again.leave();
    }

    @Test
    void ringsHaveABoundOfTheirOwn() throws IOException {
        mappings.addRing();
        mappings.addRing();
        assertThatThrownBy(mappings::addRing).isInstanceOf(IOException.class).hasMessageContaining("max_map_count");
        mappings.forgetRing();
        mappings.addRing();
    }

    @Test
    void readsTheKernelsBound() throws Exception {
        Process cat = new ProcessBuilder("cat", "/proc/sys/vm/max_map_count").start();
        assertThat(PeerMappings.mapCount())
                .isEqualTo(Integer.parseInt(cat.inputReader().readLine().trim()));
        assertThat(cat.waitFor()).isZero();
    }

    private static long descriptors() throws IOException {
        try (Stream<Path> open = Files.list(Path.of("/proc/self/fd"))) {
            return open.filter(Files::isDirectory).count();
        }
    }
}
