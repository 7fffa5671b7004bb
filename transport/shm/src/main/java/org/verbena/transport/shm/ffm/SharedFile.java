package org.verbena.transport.shm.ffm;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.VarHandle;
import java.nio.file.Files;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.ffm.MappedMemory;

/**
 * A file in memory, without a name, that another process of the same user may open and map. Its size cannot change: no
 * access to a mapping can fail because somebody has cut the file (SIGBUS). It is gone when the last descriptor and the
 * last mapping of it are, also when processes are killed.
 *
 * <p>A peer opens it as {@code /proc/<pid>/fd/<descriptor>}, so both must be in one PID namespace.
 *
 * <p>Source: memfd_create(2), fcntl(2) (F_ADD_SEALS), mmap(2), proc_pid_fd(5)
 */
@SuppressWarnings("restricted") // mapping memory is what this class is for
public final class SharedFile implements AutoCloseable {
    private static final int MFD_CLOEXEC = 1;
    private static final int MFD_ALLOW_SEALING = 2;
    private static final int F_ADD_SEALS = 1033;
    private static final int F_GET_SEALS = 1034;
    private static final int F_SEAL_SHRINK = 2;
    private static final int F_SEAL_GROW = 4;
    private static final int F_SEAL_FUTURE_WRITE = 16;
    private static final int FIXED_SIZE = F_SEAL_SHRINK | F_SEAL_GROW;
    private static final int O_RDONLY = 0;
    private static final int O_RDWR = 2;
    private static final int O_CLOEXEC = 0x80000;
    private static final int SEEK_END = 2;
    private static final int EMFILE = 24;

    private static final Linker.Option ERRNO_CAPTURE = Linker.Option.captureCallState("errno");
    private static final StructLayout ERRNO_LAYOUT = Linker.Option.captureStateLayout();
    private static final VarHandle ERRNO = ERRNO_LAYOUT.varHandle(MemoryLayout.PathElement.groupElement("errno"));

    /** Linked when they are needed: linking is a restricted operation, and the JVM warns of it where it was not allowed. */
    private static final class Calls {
        /** {@code int memfd_create(const char *name, unsigned int flags);} */
        static final MethodHandle MEMFD_CREATE = find(
                "memfd_create", FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.ADDRESS, ValueLayout.JAVA_INT));

        /** {@code int ftruncate(int fd, off_t length);} */
        static final MethodHandle FTRUNCATE = find(
                "ftruncate", FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG));

        /** {@code int fcntl(int fd, int op, ... int arg);} */
        static final MethodHandle FCNTL = find(
                "fcntl",
                FunctionDescriptor.of(
                        ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.JAVA_INT),
                Linker.Option.firstVariadicArg(2));

        /** {@code int open(const char *pathname, int flags, ... mode_t mode);} */
        static final MethodHandle OPEN = find(
                "open",
                FunctionDescriptor.of(
                        ValueLayout.JAVA_INT, ValueLayout.ADDRESS, ValueLayout.JAVA_INT, ValueLayout.JAVA_INT),
                Linker.Option.firstVariadicArg(2));

        /** {@code off_t lseek(int fd, off_t offset, int whence);} */
        static final MethodHandle LSEEK = find(
                "lseek",
                FunctionDescriptor.of(
                        ValueLayout.JAVA_LONG, ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG, ValueLayout.JAVA_INT));

        /** {@code int close(int fd);} */
        static final MethodHandle CLOSE =
                find("close", FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_INT));

        private Calls() {}

        private static MethodHandle find(String name, FunctionDescriptor descriptor, Linker.Option... more) {
            Linker linker = Linker.nativeLinker();
            SymbolLookup symbols = linker.defaultLookup();
            MemorySegment address =
                    symbols.find(name).orElseThrow(() -> new UnsatisfiedLinkError("the C library has no " + name));
            Linker.Option[] options = new Linker.Option[more.length + 1];
            System.arraycopy(more, 0, options, 0, more.length);
            options[more.length] = ERRNO_CAPTURE;
            return linker.downcallHandle(address, descriptor, options);
        }
    }

    private final int descriptor;
    private final MemorySegment memory;
    private boolean closed;

    private SharedFile(int descriptor, MemorySegment memory) {
        this.descriptor = descriptor;
        this.memory = memory;
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
        try (Arena probe = Arena.ofShared()) {
            create("verbena-probe", 4096, true, probe).close();
            return null;
        } catch (IOException | RuntimeException | LinkageError failed) {
            return "no shared memory can be made: " + failed;
        }
    }

    /**
     * Creates a file of zeros and maps it. The kernel gives it memory page by page, when it is first used.
     *
     * @param name shown in {@code /proc}
     * @param lengthBytes its size, a multiple of the page size
     * @param readOnlyToOthers whether nobody but this mapping may ever write it
     * @param arena unmaps it when it is closed; shared
     * @return the file, open
     * @throws IOException no descriptor or no memory is left, or the kernel lacks a seal
     */
    public static SharedFile create(String name, long lengthBytes, boolean readOnlyToOthers, Arena arena)
            throws IOException {
        try (Arena call = Arena.ofConfined()) {
            MemorySegment errno = call.allocate(ERRNO_LAYOUT);
            int made = (int)
                    Calls.MEMFD_CREATE.invokeExact(errno, call.allocateFrom(name), MFD_CLOEXEC | MFD_ALLOW_SEALING);
            check("memfd_create", made, errno);
            try {
                check("ftruncate", (int) Calls.FTRUNCATE.invokeExact(errno, made, lengthBytes), errno);
                check("fcntl(F_ADD_SEALS)", (int) Calls.FCNTL.invokeExact(errno, made, F_ADD_SEALS, FIXED_SIZE), errno);
                MemorySegment memory = MappedMemory.mapFile(arena, made, lengthBytes, true);
                if (readOnlyToOthers) {
                    check(
                            "fcntl(F_SEAL_FUTURE_WRITE)",
                            (int) Calls.FCNTL.invokeExact(errno, made, F_ADD_SEALS, F_SEAL_FUTURE_WRITE),
                            errno);
                }
                return new SharedFile(made, memory);
            } catch (Throwable failed) {
                closeDescriptor(errno, made);
                throw failed;
            }
        } catch (IOException | RuntimeException | Error known) {
            throw known;
        } catch (Throwable impossible) {
            throw new LinkageError("a method handle threw", impossible);
        }
    }

    /**
     * Maps a file of another process of this user. What that process says of it is not trusted: the file must have the
     * size that was told, and the seals that keep it so.
     *
     * @param pid the process
     * @param descriptor its descriptor of the file
     * @param lengthBytes the size that it has to have
     * @param writable whether to map it for writing
     * @param arena unmaps it when it is closed; shared
     * @return the memory
     * @throws IOException there is no such file, it is another one, or the kernel refuses
     */
    public static MemorySegment map(long pid, int descriptor, long lengthBytes, boolean writable, Arena arena)
            throws IOException {
        String path = "/proc/" + pid + "/fd/" + descriptor;
        try (Arena call = Arena.ofConfined()) {
            MemorySegment errno = call.allocate(ERRNO_LAYOUT);
            // A pipe, a device or a terminal would do something when it is opened; a memfd has no other name.
            String target = Files.readSymbolicLink(Path.of(path)).toString();
            if (!target.startsWith("/memfd:")) {
                throw new IOException(path + " is not a file in memory, but " + target);
            }
            int opened = (int) Calls.OPEN.invokeExact(
                    errno, call.allocateFrom(path), (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC, 0);
            check("open(" + path + ")", opened, errno);
            try {
                int seals = (int) Calls.FCNTL.invokeExact(errno, opened, F_GET_SEALS, 0);
                check("fcntl(F_GET_SEALS)", seals, errno);
                long bytes = (long) Calls.LSEEK.invokeExact(errno, opened, 0L, SEEK_END);
                if ((seals & FIXED_SIZE) != FIXED_SIZE || bytes != lengthBytes) {
                    throw new IOException(
                            path + " has " + bytes + " bytes and the seals 0x" + Integer.toHexString(seals)
                                    + "; expected " + lengthBytes + " bytes, and that they cannot change");
                }
                return MappedMemory.mapFile(arena, opened, lengthBytes, writable);
            } finally {
                closeDescriptor(errno, opened);
            }
        } catch (IOException | RuntimeException | Error known) {
            throw known;
        } catch (Throwable impossible) {
            throw new LinkageError("a method handle threw", impossible);
        }
    }

    private static void closeDescriptor(MemorySegment errno, int descriptor) throws Throwable {
        int ignored = (int) Calls.CLOSE.invokeExact(errno, descriptor);
    }

    private static void check(String call, int result, MemorySegment errno) throws IOException {
        if (result < 0) {
            throw failure(call, errno);
        }
    }

    private static IOException failure(String call, MemorySegment errno) {
        int number = (int) ERRNO.get(errno, 0L);
        return new IOException(call + " failed with errno " + number
                + (number == EMFILE ? ": the process has too many open descriptors, raise `ulimit -n`" : ""));
    }

    /**
     * The number that a peer opens it by.
     *
     * @return the descriptor, valid until it is closed
     */
    public int descriptor() {
        return descriptor;
    }

    /**
     * The memory.
     *
     * @return this process's mapping, which lives as long as the arena
     */
    public MemorySegment memory() {
        return memory;
    }

    /** Closes the descriptor, and nobody can open the file any more. Mappings stay. Idempotent, any thread. */
    @Override
    public synchronized void close() {
        if (closed) {
            return;
        }
        closed = true;
        try (Arena call = Arena.ofConfined()) {
            closeDescriptor(call.allocate(ERRNO_LAYOUT), descriptor);
        } catch (RuntimeException | Error known) {
            throw known;
        } catch (Throwable impossible) {
            throw new LinkageError("close(2) could not be called", impossible);
        }
    }
}
