package org.verbena.transport.shm;

import io.netty.util.collection.IntObjectHashMap;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.shm.ffm.SharedFile;

/** The peer's memory that this side has mapped. One thread. */
final class PeerFiles {
    private static final Logger LOG = LoggerFactory.getLogger(PeerFiles.class);

    /** A peer with more files has the rest read by its own loop. */
    private static final int MAX_FILES = 4096;

    private final long pid;
    /** Null while the peer has none. */
    private @Nullable IntObjectHashMap<Mapped> mapped;

    private record Mapped(Arena arena, MemorySegment memory) {}

    PeerFiles(long pid) {
        this.pid = pid;
    }

    /** The peer has a file to map. One that cannot be mapped is done without. */
    void add(int number, int descriptor, long lengthBytes, boolean isWritable) {
        IntObjectHashMap<Mapped> all = mapped;
        if (all == null) {
            all = new IntObjectHashMap<>();
            mapped = all;
        }
        if (all.size() >= MAX_FILES || lengthBytes <= 0 || descriptor < 0) {
            return;
        }
        Arena arena = Arena.ofShared();
        try {
            MemorySegment memory = SharedFile.map(pid, descriptor, lengthBytes, isWritable, arena);
            close(all.put(number, new Mapped(arena, memory)));
        } catch (IOException e) {
            arena.close();
            LOG.debug("what the peer shares cannot be mapped; its own loop accesses it", e);
        }
    }

    /** The peer has freed a file. */
    void remove(int number) {
        IntObjectHashMap<Mapped> all = mapped;
        if (all != null) {
            close(all.remove(number));
        }
    }

    @Nullable MemorySegment find(int number) {
        IntObjectHashMap<Mapped> all = mapped;
        Mapped found = all == null ? null : all.get(number);
        return found == null ? null : found.memory;
    }

    void close() {
        IntObjectHashMap<Mapped> all = mapped;
        if (all != null) {
            mapped = null;
            all.values().forEach(PeerFiles::close);
        }
    }

    private static void close(@Nullable Mapped old) {
        if (old != null) {
            old.arena.close();
        }
    }
}
