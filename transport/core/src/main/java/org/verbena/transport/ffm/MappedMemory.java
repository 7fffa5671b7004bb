package org.verbena.transport.ffm;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Memory that is mapped: files, and anonymous memory that the kernel gives zeroed, page by page when it is first used,
 * and backs with transparent huge pages if it is asked to. {@code Arena.allocate} writes the zeros itself, which takes
 * seconds where a gigabyte is wanted. Linux only. Source: mmap(2), madvise(2).
 */
@SuppressWarnings("restricted") // mapping memory is what this class is for
public final class MappedMemory {
    /** The transparent huge page of x86-64, and of arm64 with 4 KiB pages. */
    public static final int HUGE_PAGE_BYTES = 2 << 20;

    private static final int PROT_READ = 1;
    private static final int PROT_READ_WRITE = 1 | 2;
    private static final int MAP_SHARED = 0x01;
    private static final int MAP_PRIVATE_ANONYMOUS = 0x02 | 0x20;
    private static final int MADV_HUGEPAGE = 14;
    private static final long MAP_FAILED = -1;
    private static final Path SETTING = Path.of("/sys/kernel/mm/transparent_hugepage/enabled");

    /**
     * Linked when they are needed: linking is a restricted operation, and the JVM warns of it where it was not allowed.
     */
    private static final class Calls {
        /** {@code void *mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset);} */
        private static final @Nullable MethodHandle MMAP = find(
                "mmap",
                FunctionDescriptor.of(
                        ValueLayout.JAVA_LONG,
                        ValueLayout.JAVA_LONG,
                        ValueLayout.JAVA_LONG,
                        ValueLayout.JAVA_INT,
                        ValueLayout.JAVA_INT,
                        ValueLayout.JAVA_INT,
                        ValueLayout.JAVA_LONG));

        /** {@code int munmap(void *addr, size_t length);} */
        private static final @Nullable MethodHandle MUNMAP = find(
                "munmap", FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG));

        /** {@code int madvise(void *addr, size_t length, int advice);} */
        private static final @Nullable MethodHandle MADVISE = find(
                "madvise",
                FunctionDescriptor.of(
                        ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG, ValueLayout.JAVA_INT));

        private static @Nullable MethodHandle find(String name, FunctionDescriptor descriptor) {
            if (!System.getProperty("os.name", "").startsWith("Linux")) {
                return null;
            }
            Linker linker = Linker.nativeLinker();
            SymbolLookup symbols = linker.defaultLookup();
            MemorySegment address = symbols.find(name).orElse(null);
            return address == null ? null : linker.downcallHandle(address, descriptor, Errno.CAPTURE);
        }
    }

    private MappedMemory() {}

    /**
     * Whether memory can be mapped: on Linux, in a program that allows this module native access
     * ({@code --enable-native-access}).
     *
     * @return false if {@link #map} would fail, or make the JVM warn
     */
    public static boolean isAvailable() {
        return MappedMemory.class.getModule().isNativeAccessEnabled() && Calls.MMAP != null && Calls.MUNMAP != null;
    }

    /**
     * Checks, before anything is linked, that this module has native access.
     *
     * @throws IllegalCallerException the JVM denies it
     */
    public static void checkNativeAccess() {
        Objects.requireNonNull(MemorySegment.NULL.reinterpret(1));
    }

    /**
     * Why huge pages cannot be asked for.
     *
     * @return null if they can
     */
    public static @Nullable String hugePagesUnavailabilityCause() {
        if (Calls.MMAP == null || Calls.MUNMAP == null || Calls.MADVISE == null) {
            return "huge pages are asked for with mmap(2) and madvise(2) of Linux, which this system does not have";
        }
        String setting;
        try {
            setting = Files.readString(SETTING).trim();
        } catch (IOException unreadable) {
            return "this kernel has no transparent huge pages (" + SETTING + " cannot be read)";
        }
        return setting.contains("[never]")
                ? SETTING + " says \"" + setting + "\"; as root: echo madvise > " + SETTING
                : null;
    }

    /**
     * Maps memory.
     *
     * @param arena unmaps it when it is closed
     * @param lengthBytes how much
     * @return zeroed memory that begins at a page
     * @throws OutOfMemoryError the system has no more
     */
    public static MemorySegment map(Arena arena, long lengthBytes) {
        return MemorySegment.ofAddress(mapped(arena, lengthBytes)).reinterpret(lengthBytes, arena, null);
    }

    /**
     * Maps a file, which others may have mapped as well.
     *
     * @param arena unmaps it when it is closed
     * @param descriptor of the file; it may be closed afterwards
     * @param lengthBytes how much, from its beginning
     * @param isWritable whether to map it for writing
     * @return the memory
     * @throws IOException the file may not be mapped like this, or the system has no more memory
     */
    public static MemorySegment mapFile(Arena arena, int descriptor, long lengthBytes, boolean isWritable)
            throws IOException {
        MemorySegment mapped = mapFile(descriptor, lengthBytes, isWritable);
        return mapped.reinterpret(arena, MappedMemory::unmap);
    }

    /**
     * Maps a file until {@link #unmap} is called. Closing a shared arena costs a handshake with every thread of the
     * program, which is too much for mappings that come and go with each connection.
     *
     * @param descriptor of the file; it may be closed afterwards
     * @param lengthBytes how much, from its beginning
     * @param isWritable whether to map it for writing
     * @return the memory
     * @throws IOException the file may not be mapped like this, or the system has no more memory
     */
    public static MemorySegment mapFile(int descriptor, long lengthBytes, boolean isWritable) throws IOException {
        long address = mapped(lengthBytes, isWritable ? PROT_READ_WRITE : PROT_READ, MAP_SHARED, descriptor, 0);
        MemorySegment mapped = MemorySegment.ofAddress(address).reinterpret(lengthBytes);
        return isWritable ? mapped : mapped.asReadOnly();
    }

    /**
     * Maps what a descriptor has from an offset on, for reading and writing, until {@link #unmap} is called.
     *
     * @param descriptor of the file, or of what a driver offers like one
     * @param offsetBytes where it begins there
     * @param lengthBytes how much
     * @return the memory
     * @throws IOException it may not be mapped like this, or the system has no more memory
     */
    public static MemorySegment mapAt(int descriptor, long offsetBytes, long lengthBytes) throws IOException {
        long address = mapped(lengthBytes, PROT_READ_WRITE, MAP_SHARED, descriptor, offsetBytes);
        return MemorySegment.ofAddress(address).reinterpret(lengthBytes);
    }

    /**
     * Maps zeroed memory until {@link #unmap} is called.
     *
     * @param lengthBytes how much
     * @return memory that begins at a page
     * @throws IOException the system has no more
     */
    public static MemorySegment map(long lengthBytes) throws IOException {
        long address = mapped(lengthBytes, PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS, -1, 0);
        return MemorySegment.ofAddress(address).reinterpret(lengthBytes);
    }

    /**
     * Maps memory and asks for huge pages.
     *
     * @param arena unmaps it when it is closed
     * @param lengthBytes how much
     * @return zeroed memory that begins at a huge page
     * @throws OutOfMemoryError the system has no more
     */
    public static MemorySegment mapHuge(Arena arena, long lengthBytes) {
        MethodHandle madvise = Calls.MADVISE;
        if (madvise == null) {
            throw new IllegalStateException(hugePagesUnavailabilityCause());
        }
        // A page more than asked for, so that an aligned piece is inside.
        long address = mapped(arena, lengthBytes + HUGE_PAGE_BYTES);
        long aligned = (address + HUGE_PAGE_BYTES - 1) & -HUGE_PAGE_BYTES;
        try (Arena call = Arena.ofConfined()) {
            MemorySegment errno = Errno.newCapture(call);
            int refused = (int) madvise.invokeExact(errno, aligned, lengthBytes, MADV_HUGEPAGE);
            if (refused != 0) {
                throw new IllegalStateException("madvise(0x" + Long.toHexString(aligned) + ", " + lengthBytes
                        + ", MADV_HUGEPAGE) failed with " + Errno.describe(Errno.get(errno))
                        + "; switch BufferPoolOptions.hugePages off");
            }
            return MemorySegment.ofAddress(aligned).reinterpret(lengthBytes, arena, null);
        } catch (RuntimeException | Error known) {
            throw known;
        } catch (Throwable impossible) {
            throw new LinkageError("madvise(2) could not be called", impossible);
        }
    }

    private static long mapped(Arena arena, long lengthBytes) {
        try {
            return mapped(arena, lengthBytes, PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS, -1);
        } catch (IOException refused) {
            OutOfMemoryError noMore = new OutOfMemoryError(refused.getMessage());
            noMore.initCause(refused);
            throw noMore;
        }
    }

    private static long mapped(Arena arena, long lengthBytes, int protection, int flags, int descriptor)
            throws IOException {
        long address = mapped(lengthBytes, protection, flags, descriptor, 0);
        MemorySegment.ofAddress(address).reinterpret(lengthBytes, arena, MappedMemory::unmap);
        return address;
    }

    private static long mapped(long lengthBytes, int protection, int flags, int descriptor, long offsetBytes)
            throws IOException {
        MethodHandle mmap = Calls.MMAP;
        if (mmap == null || Calls.MUNMAP == null) {
            throw new IllegalStateException("this system has no mmap(2)");
        }
        try (Arena call = Arena.ofConfined()) {
            MemorySegment errno = Errno.newCapture(call);
            long address = (long) mmap.invokeExact(errno, 0L, lengthBytes, protection, flags, descriptor, offsetBytes);
            if (address == MAP_FAILED) {
                throw new ErrnoException("mmap(" + lengthBytes + " bytes)", Errno.get(errno));
            }
            return address;
        } catch (IOException | RuntimeException | Error known) {
            throw known;
        } catch (Throwable impossible) {
            throw new LinkageError("mmap(2) could not be called", impossible);
        }
    }

    /**
     * Unmaps what {@link #mapFile(int, long, boolean)}, {@link #mapAt} or {@link #map(long)} mapped. Any access that
     * follows, or is under way, ends the process: the caller has made sure that there is none.
     *
     * @param mapping as it was given
     */
    public static void unmap(MemorySegment mapping) {
        MethodHandle munmap = Calls.MUNMAP;
        if (munmap == null) {
            throw new IllegalStateException("this system has no munmap(2)");
        }
        try (Arena call = Arena.ofConfined()) {
            int refused = (int) munmap.invokeExact(Errno.newCapture(call), mapping.address(), mapping.byteSize());
            assert refused == 0 : "munmap refused what mmap gave";
        } catch (RuntimeException | Error known) {
            throw known;
        } catch (Throwable impossible) {
            throw new LinkageError("munmap(2) could not be called", impossible);
        }
    }
}
