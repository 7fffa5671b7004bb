package org.verbena.transport.shm;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.ffm.MappedMemory;
import org.verbena.transport.shm.ffm.FileIdentity;
import org.verbena.transport.shm.ffm.ProcessFiles;
import org.verbena.transport.shm.ffm.SharedFile;

/**
 * A process that this one has connections with, and its files, which all of these connections share. Any thread.
 */
final class PeerProcess {
    private final PeerProcesses all;
    private final PeerMappings mappings;
    private final ProcessFiles files;
    final long pid;

    private record Key(FileIdentity identity, long lengthBytes, boolean isWritable) {}

    // Guarded by the mappings.
    private final Map<Key, PeerFile> known = new HashMap<>();
    private final Map<FileIdentity, PeerDoorbell> doorbells = new HashMap<>();
    private int mappedFiles;
    private long mappedBytes;

    /** Guarded by {@link PeerProcesses}. */
    int connections;

    PeerProcess(PeerProcesses all, PeerMappings mappings, long pid, ProcessFiles files) {
        this.all = all;
        this.mappings = mappings;
        this.pid = pid;
        this.files = files;
    }

    ProcessFiles files() {
        return files;
    }

    PeerMappings mappings() {
        return mappings;
    }

    /**
     * Finds a file without opening it. {@link #release} follows.
     *
     * @param descriptor the process's
     * @param lengthBytes as the process says
     * @param isWritable whether it is to be mapped for writing
     * @return the same for all descriptors of the file
     * @throws IOException the process has no such descriptor
     */
    PeerFile find(int descriptor, long lengthBytes, boolean isWritable) throws IOException {
        FileIdentity identity = files.identify(descriptor);
        synchronized (mappings) {
            PeerFile found = known.computeIfAbsent(
                    new Key(identity, lengthBytes, isWritable),
                    key -> new PeerFile(this, identity, lengthBytes, isWritable));
            found.addUser(descriptor);
            return found;
        }
    }

    /** A connection has no use for a file any more. */
    void release(PeerFile file) {
        MemorySegment unused = null;
        synchronized (mappings) {
            if (file.removeUser()) {
                known.remove(new Key(file.identity, file.lengthBytes, file.isWritable));
                unused = mappings.forget(file);
            }
        }
        unmap(unused);
    }

    /**
     * As {@link #release(PeerFile)}, for all files of a connection: there may be thousands, too many for a turn of a
     * loop.
     */
    void release(List<PeerFile> ofConnection) {
        List<MemorySegment> unused = new ArrayList<>();
        synchronized (mappings) {
            for (PeerFile file : ofConnection) {
                if (file.removeUser()) {
                    known.remove(new Key(file.identity, file.lengthBytes, file.isWritable));
                    MemorySegment memory = mappings.forget(file);
                    if (memory != null) {
                        unused.add(memory);
                    }
                }
            }
        }
        if (!unused.isEmpty()) {
            Runnable task = () -> unused.forEach(MappedMemory::unmap);
            try {
                Thread.ofPlatform().daemon().name("verbena-unmap").start(task);
            } catch (Throwable noThread) {
                task.run();
            }
        }
    }

    /**
     * Maps the doorbell of one of the process's loops, or finds it mapped. {@link #release(PeerDoorbell)} follows.
     *
     * @param descriptor the process's, which may have become another doorbell's since it was sent
     * @param inode the doorbell's
     * @throws IOException the process has made no such file, or there is no room for its mapping
     */
    PeerDoorbell openDoorbell(int descriptor, long inode) throws IOException {
        FileIdentity identity = files.identify(descriptor);
        if (identity.inode() != inode) {
            throw new IOException("the descriptor " + descriptor + " of " + this + " is another file by now");
        }
        synchronized (mappings) {
            PeerDoorbell found = doorbells.get(identity);
            if (found == null) {
                found = new PeerDoorbell(identity, mapDoorbell(descriptor, identity));
                doorbells.put(identity, found);
            }
            found.users++;
            return found;
        }
    }

    private MemorySegment mapDoorbell(int descriptor, FileIdentity identity) throws IOException {
        if (!files.hasMade(descriptor, identity)) {
            throw new IOException("the descriptor " + descriptor + " of " + this + " is not its own doorbell");
        }
        mappings.addRing();
        MemorySegment made = null;
        try (SharedFile opened = files.open(descriptor, Doorbell.BYTES, true)) {
            made = opened.memory();
            if (!opened.identity().equals(identity)) {
                throw new IOException("the descriptor " + descriptor + " has become another file");
            }
            return made;
        } catch (IOException | RuntimeException | Error e) {
            unmap(made);
            mappings.forgetRing();
            throw e;
        }
    }

    /** A connection rings no more. */
    void release(PeerDoorbell doorbell) {
        synchronized (mappings) {
            if (--doorbell.users == 0) {
                doorbells.remove(doorbell.identity);
                mappings.removeRing(doorbell.memory);
            }
        }
    }

    private static void unmap(@Nullable MemorySegment unused) {
        if (unused != null) {
            MappedMemory.unmap(unused);
        }
    }

    /** One more connection has it: {@link #leave} follows once more. */
    PeerProcess retain() {
        all.retain(this);
        return this;
    }

    /** A connection with the process has ended. */
    void leave() {
        all.leave(this);
    }

    // Under the lock of the mappings.

    void countMapped(int count, long bytes) {
        mappedFiles += count;
        mappedBytes += bytes;
    }

    int mappedFiles() {
        return mappedFiles;
    }

    long mappedBytes() {
        return mappedBytes;
    }

    List<PeerFile> mapped() {
        return mappings.mappedOf(this);
    }

    @Override
    public String toString() {
        return "process " + pid;
    }
}
