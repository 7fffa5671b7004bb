package org.verbena.transport.shm.ffm;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.ffm.MappedMemory;

/**
 * A file in memory, without a name, that another process of the same user may open and map. Its size cannot change: no
 * access to a mapping can fail because the file was truncated (SIGBUS). It is gone when the last descriptor and the
 * last mapping of it are, also when processes are killed.
 *
 * <p>A peer opens it by {@link ProcessFiles}, so both must be in one PID namespace.
 *
 * <p>Source: memfd_create(2), fcntl(2) (F_ADD_SEALS), mmap(2)
 */
@SuppressWarnings("restricted") // mapping memory is what this class is for
public final class SharedFile implements AutoCloseable {
    private static final int MFD_CLOEXEC = 1;
    private static final int MFD_ALLOW_SEALING = 2;
    private static final int F_SEAL_SHRINK = 2;
    private static final int F_SEAL_GROW = 4;
    private static final int F_SEAL_FUTURE_WRITE = 16;
    static final int FIXED_SIZE = F_SEAL_SHRINK | F_SEAL_GROW;

    private static final int MADV_REMOVE = 9;

    /** Where the kernel keeps all files without a name; 0 before it was asked. */
    private static volatile long device;

    private final int descriptor;
    private final MemorySegment memory;
    private final FileIdentity identity;
    private boolean closed;

    SharedFile(int descriptor, MemorySegment memory, FileIdentity identity) {
        this.descriptor = descriptor;
        this.memory = memory;
        this.identity = identity;
    }

    /**
     * Whether there are such files here, and this module may make them.
     *
     * @return null if so, else why not and what to do
     */
    public static @Nullable String unavailabilityCause() {
        if (!System.getProperty("os.name", "").startsWith("Linux")) {
            return "the shared-memory provider needs Linux (memfd_create(2)); use the provider soft here";
        }
        try {
            checkNativeAccess();
            SharedFile probe = create("verbena-probe", 4096, true);
            probe.close();
            MappedMemory.unmap(probe.memory);
            return null;
        } catch (IllegalCallerException denied) {
            return "the JVM denies the native access that shared memory needs: start it with --enable-native-access="
                    + (SharedFile.class.getModule().isNamed()
                            ? MappedMemory.class.getModule().getName() + ","
                                    + SharedFile.class.getModule().getName()
                            : "ALL-UNNAMED");
        } catch (IOException | RuntimeException | LinkageError failed) {
            return "no shared memory can be made: " + failed.getMessage();
        }
    }

    /** The device of all such files, which no file of a file system has. */
    static long device() throws IOException {
        long known = device;
        if (known == 0) {
            int probe = SystemCalls.memfdCreate("verbena-probe", MFD_CLOEXEC);
            try {
                known = SystemCalls.status(probe, "", "verbena-probe")
                        .identity()
                        .device();
            } finally {
                SystemCalls.close(probe);
            }
            device = known;
        }
        return known;
    }

    /** Called before a class is loaded that needs native access, and would fail without the reason. */
    private static void checkNativeAccess() {
        Objects.requireNonNull(MemorySegment.NULL.reinterpret(1));
        MappedMemory.checkNativeAccess();
    }

    /**
     * Creates a file of zeros and maps it. The kernel gives it memory page by page, when it is first used.
     *
     * @param name shown in {@code /proc}
     * @param lengthBytes its size; the mapping's last page may have more, which is not used
     * @param readOnlyToOthers whether only this mapping may ever write it
     * @return the file, open; its memory is mapped until {@link MappedMemory#unmap}
     * @throws IOException no descriptor or no memory is left, or the kernel lacks a seal
     */
    public static SharedFile create(String name, long lengthBytes, boolean readOnlyToOthers) throws IOException {
        int made = SystemCalls.memfdCreate(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
        MemorySegment memory = null;
        try {
            SystemCalls.truncate(made, lengthBytes);
            SystemCalls.fcntl("F_ADD_SEALS", made, SystemCalls.F_ADD_SEALS, FIXED_SIZE);
            memory = MappedMemory.mapFile(made, lengthBytes, true);
            if (readOnlyToOthers) {
                SystemCalls.fcntl("F_SEAL_FUTURE_WRITE", made, SystemCalls.F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
            }
            return new SharedFile(
                    made, memory, SystemCalls.status(made, "", name).identity());
        } catch (IOException | RuntimeException | Error failed) {
            if (memory != null) {
                MappedMemory.unmap(memory);
            }
            SystemCalls.close(made);
            throw failed;
        }
    }

    /**
     * As {@link #create(String, long, boolean)}, for memory that lives as long as an arena.
     *
     * @param name shown in {@code /proc}
     * @param lengthBytes its size
     * @param readOnlyToOthers whether only this mapping may ever write it
     * @param arena unmaps it when it is closed
     * @return the file, open
     * @throws IOException no descriptor or no memory is left, or the kernel lacks a seal
     */
    public static SharedFile create(String name, long lengthBytes, boolean readOnlyToOthers, Arena arena)
            throws IOException {
        SharedFile made = create(name, lengthBytes, readOnlyToOthers);
        MemorySegment memory = made.memory.reinterpret(arena, MappedMemory::unmap);
        return new SharedFile(made.descriptor, memory, made.identity);
    }

    /**
     * Gives the pages of a file back to the system, for all who have it mapped: they are zeros then, and the kernel
     * provides them when they are next used. Pages that are only partly within the range stay as they are.
     *
     * <p>Source: madvise(2) (MADV_REMOVE)
     *
     * @param range of a writable mapping
     * @throws IOException the kernel refuses: the mapping is locked (mlock(2)), or is no file's, or a seal forbids it
     */
    public static void removePages(MemorySegment range) throws IOException {
        long page = SystemCalls.pageBytes();
        long first = range.address() + page - 1 & -page;
        long end = range.address() + range.byteSize() & -page;
        if (first < end) {
            SystemCalls.advise("MADV_REMOVE", first, end - first, MADV_REMOVE);
        }
    }

    /**
     * The number by which a peer opens it.
     *
     * @return the descriptor, valid until it is closed
     */
    public int descriptor() {
        return descriptor;
    }

    /**
     * The memory.
     *
     * @return this process's mapping
     */
    public MemorySegment memory() {
        return memory;
    }

    /**
     * Which file it is.
     *
     * @return the same in every process
     */
    public FileIdentity identity() {
        return identity;
    }

    /** Closes the descriptor: the file cannot be opened any more. Mappings stay. Idempotent, any thread. */
    @Override
    public synchronized void close() {
        if (!closed) {
            closed = true;
            SystemCalls.close(descriptor);
        }
    }
}
