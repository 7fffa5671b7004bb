package org.verbena.transport.shm;

import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.ffm.Errno;
import org.verbena.transport.ffm.ErrnoException;
import org.verbena.transport.ffm.MappedMemory;
import org.verbena.transport.shm.ffm.SharedFile;

/**
 * What this JVM has mapped of its peers' files: each file once, however many connections use it. A JVM with as many
 * mappings as the kernel allows ends at its next own one, so there is a bound far below that; the mappings that were
 * not used for the longest time make room. Any thread.
 */
final class PeerMappings {
    private static final Logger LOG = LoggerFactory.getLogger(PeerMappings.class);

    /** Linux's default of {@code vm.max_map_count}. */
    private static final int USUAL_MAP_COUNT = 65_530;

    /** Of the kernel's bound, the share of peers' files; a quarter is what is left for the rest of the program. */
    private static final int SHARE = 8;

    /** Of the kernel's bound, the share of connections' rings. */
    private static final int RING_SHARE = 2;

    /** Address space of all files together: less than a hundredth of what a process has. */
    private static final long MOST_BYTES = 1L << 40;

    /** Address space of the files of one process. */
    private static final long MOST_BYTES_OF_PROCESS = MOST_BYTES / 4;

    /** Mappings that go at once, so that the search for them is not repeated for each. */
    private static final int BATCH = 32;

    /** Per JVM, because the kernel's limit is per process. */
    static final PeerMappings ALL = new PeerMappings(mapCount() / SHARE, mapCount() / RING_SHARE);

    private final int most;
    private final int mostRings;

    /** Guarded by this, as are the figures below and what {@link PeerProcess} and {@link PeerFile} name. */
    private final Set<PeerFile> mapped = new HashSet<>();

    private long mappedBytes;
    private int rings;

    /** Counts mappings; a file notes it when it is used. */
    private volatile long clock;

    PeerMappings(int most, int mostRings) {
        this.most = most;
        this.mostRings = mostRings;
    }

    static int mapCount() {
        try (InputStream setting = Files.newInputStream(Path.of("/proc/sys/vm/max_map_count"))) {
            // At once: the second read of such a file gives nothing, and Files.readString reads one byte first.
            String text = new String(setting.readNBytes(32), StandardCharsets.US_ASCII);
            return Integer.parseInt(text.trim());
        } catch (IOException | RuntimeException unknown) {
            return USUAL_MAP_COUNT;
        }
    }

    long clock() {
        return clock;
    }

    /** How many files are mapped. */
    synchronized int size() {
        return mapped.size();
    }

    /** Counts a connection's ring, or a doorbell, which are mappings as well. */
    synchronized void addRing() throws IOException {
        if (rings >= mostRings) {
            throw new IOException("this process has " + rings
                    + " connections through shared memory, half as many as it may have mappings: raise"
                    + " vm.max_map_count (sysctl)");
        }
        rings++;
    }

    /** Unmaps a ring. */
    void removeRing(MemorySegment memory) {
        MappedMemory.unmap(memory);
        forgetRing();
    }

    /** A ring that was counted was not mapped after all. */
    synchronized void forgetRing() {
        rings--;
    }

    /**
     * Maps a file, which its caller has entered then.
     *
     * @return false if it cannot be mapped: its owner has to access it
     */
    synchronized boolean map(PeerFile file) {
        if (file.tryEnter()) {
            return true; // another loop was quicker
        }
        if (file.isRefused() || !makeRoom(file)) {
            return false;
        }
        try (SharedFile opened = file.process.files().open(file.descriptor(), file.lengthBytes, file.isWritable)) {
            if (!opened.identity().equals(file.identity)) {
                MappedMemory.unmap(opened.memory());
                throw new IOException("the descriptor " + file.descriptor() + " has become another file");
            }
            mapped.add(file);
            mappedBytes += file.lengthBytes;
            file.process.countMapped(1, file.lengthBytes);
            clock++;
            file.becomeMapped(opened.memory());
            return true;
        } catch (IOException e) {
            LOG.debug("what the peer shares cannot be mapped; its own loop accesses it", e);
            if (!isPassing(e)) {
                file.refuse();
            }
            return false;
        }
    }

    private static boolean isPassing(IOException failure) {
        return failure instanceof ErrnoException refused
                && (refused.errno() == Errno.EMFILE
                        || refused.errno() == Errno.ENFILE
                        || refused.errno() == Errno.ENOMEM);
    }

    private boolean makeRoom(PeerFile file) {
        PeerProcess process = file.process;
        long bytes = file.lengthBytes;
        if (bytes > MOST_BYTES_OF_PROCESS) {
            return false;
        }
        // One process may not displace all that the others have.
        while (process.mappedFiles() >= most / 2 || process.mappedBytes() > MOST_BYTES_OF_PROCESS - bytes) {
            if (!evict(process.mapped())) {
                return false;
            }
        }
        while (mapped.size() >= most || mappedBytes > MOST_BYTES - bytes) {
            if (!evict(List.copyOf(mapped))) {
                return false;
            }
        }
        return true;
    }

    /** Unmaps those that were not used for the longest time; false if all are in use at this moment. */
    private boolean evict(List<PeerFile> from) {
        List<PeerFile> oldest = from.stream()
                .sorted(Comparator.comparingLong(PeerFile::lastUsed))
                .limit(BATCH)
                .toList();
        boolean any = false;
        for (PeerFile file : oldest) {
            MemorySegment memory = forget(file);
            if (memory != null) {
                MappedMemory.unmap(memory);
                any = true;
            }
        }
        return any;
    }

    /** Takes a mapping out; returns what its caller has to unmap, null if it is in use or not mapped. */
    synchronized @Nullable MemorySegment forget(PeerFile file) {
        MemorySegment memory = file.tryLeaveMapping();
        if (memory != null) {
            mapped.remove(file);
            mappedBytes -= file.lengthBytes;
            file.process.countMapped(-1, -file.lengthBytes);
        }
        return memory;
    }

    /** The files of a process that are mapped. */
    synchronized List<PeerFile> mappedOf(PeerProcess process) {
        return mapped.stream().filter(file -> file.process == process).toList();
    }
}
