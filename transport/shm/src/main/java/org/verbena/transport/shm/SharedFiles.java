package org.verbena.transport.shm;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.shm.ffm.SharedFile;
import org.verbena.transport.software.MemorySource;

/**
 * Memory of this process that peers can map: that of pools of buffers for reading only, and what was allocated for
 * peers to write. Any thread.
 */
final class SharedFiles implements MemorySource {
    private static final Logger LOG = LoggerFactory.getLogger(SharedFiles.class);
    private static final long PAGE_BYTES = 4096;

    /** By the address of their memory. */
    private final ConcurrentSkipListMap<Long, Entry> files = new ConcurrentSkipListMap<>();

    private final AtomicInteger lastNumber = new AtomicInteger();

    /** A file, until its memory is freed. */
    static final class Entry {
        final int number;
        final SharedFile file;
        final long address;
        final long lengthBytes;

        /** Whether peers may write it. */
        final boolean isWritable;

        /** Run when it is freed. */
        private final Set<Runnable> whenFreed = ConcurrentHashMap.newKeySet();

        private volatile boolean freed;

        private Entry(int number, SharedFile file, boolean isWritable) {
            this.number = number;
            this.file = file;
            this.isWritable = isWritable;
            address = file.memory().address();
            lengthBytes = file.memory().byteSize();
        }

        boolean contains(long start, long bytes) {
            return start >= address && bytes <= lengthBytes - (start - address);
        }

        void whenFreed(Runnable action) {
            whenFreed.add(action);
            if (freed) {
                action.run();
            }
        }

        void forget(Runnable action) {
            whenFreed.remove(action);
        }

        private void free() {
            freed = true;
            file.close();
            whenFreed.forEach(Runnable::run);
        }
    }

    @Override
    @SuppressWarnings("restricted") // adds to what the arena does at its end
    public @Nullable MemorySegment allocate(Arena arena, long lengthBytes, Set<MemoryDomain.Access> access) {
        boolean isWritable =
                access.contains(MemoryDomain.Access.REMOTE_WRITE) || access.contains(MemoryDomain.Access.REMOTE_ATOMIC);
        long whole = (lengthBytes + PAGE_BYTES - 1) & -PAGE_BYTES;
        SharedFile file;
        try {
            file = SharedFile.create(isWritable ? "verbena-memory" : "verbena-buffers", whole, !isWritable, arena);
        } catch (IOException e) {
            LOG.debug("no memory that peers could map; what lies in other memory is accessed for them", e);
            return null;
        }
        Entry entry = new Entry(lastNumber.incrementAndGet(), file, isWritable);
        files.put(entry.address, entry);
        return MemorySegment.ofAddress(entry.address).reinterpret(lengthBytes, arena, ignored -> {
            files.remove(entry.address, entry);
            entry.free();
        });
    }

    /** The file that a range of memory lies in; null if it lies in none. */
    @Nullable Entry find(long address, long lengthBytes) {
        Map.Entry<Long, Entry> below = files.floorEntry(address);
        return below != null && below.getValue().contains(address, lengthBytes) ? below.getValue() : null;
    }
}
