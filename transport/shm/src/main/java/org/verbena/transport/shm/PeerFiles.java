package org.verbena.transport.shm;

import io.netty.util.collection.IntObjectHashMap;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.shm.ffm.SharedFile;

/** The peer's memory that this side has mapped, for reading. One thread. */
final class PeerFiles {
    private static final Logger LOG = LoggerFactory.getLogger(PeerFiles.class);

    /** A peer with more files has the rest read by its own loop. */
    private static final int MAX_FILES = 4096;

    private final long pid;
    private final IntObjectHashMap<Mapped> mapped = new IntObjectHashMap<>();

    private record Mapped(Arena arena, MemorySegment memory) {}

    PeerFiles(long pid) {
        this.pid = pid;
    }

    /** The peer has a file to map. One that cannot be mapped is done without. */
    void add(int number, int descriptor, long lengthBytes) {
        if (mapped.size() >= MAX_FILES || lengthBytes <= 0 || descriptor < 0) {
            return;
        }
        Arena arena = Arena.ofShared();
        try {
            MemorySegment memory = SharedFile.map(pid, descriptor, lengthBytes, false, arena);
            close(mapped.put(number, new Mapped(arena, memory)));
        } catch (IOException e) {
            arena.close();
            LOG.debug("what the peer shares cannot be mapped; its own loop reads it", e);
        }
    }

    /** The peer has freed a file. */
    void remove(int number) {
        close(mapped.remove(number));
    }

    @Nullable MemorySegment find(int number) {
        Mapped found = mapped.get(number);
        return found == null ? null : found.memory;
    }

    void close() {
        mapped.values().forEach(PeerFiles::close);
        mapped.clear();
    }

    private static void close(@Nullable Mapped old) {
        if (old != null) {
            old.arena.close();
        }
    }
}
