package org.verbena.transport.ffm;

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

/** Anonymous memory that the kernel is asked to back with transparent huge pages. Linux only. Source: mmap(2), madvise(2). */
@SuppressWarnings("restricted") // mapping memory is what this class is for
public final class HugePages {
    /** The transparent huge page of x86-64, and of arm64 with 4 KiB pages. */
    public static final int PAGE_BYTES = 2 << 20;

    private static final int PROT_READ_WRITE = 1 | 2;
    private static final int MAP_PRIVATE_ANONYMOUS = 0x02 | 0x20;
    private static final int MADV_HUGEPAGE = 14;
    private static final long MAP_FAILED = -1;
    private static final int ENOMEM = 12;
    private static final Linker.Option ERRNO_CAPTURE = Linker.Option.captureCallState("errno");
    private static final StructLayout ERRNO_LAYOUT = Linker.Option.captureStateLayout();
    private static final VarHandle ERRNO = ERRNO_LAYOUT.varHandle(MemoryLayout.PathElement.groupElement("errno"));
    private static final Path SETTING = Path.of("/sys/kernel/mm/transparent_hugepage/enabled");

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
    private static final @Nullable MethodHandle MUNMAP =
            find("munmap", FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG));

    /** {@code int madvise(void *addr, size_t length, int advice);} */
    private static final @Nullable MethodHandle MADVISE = find(
            "madvise",
            FunctionDescriptor.of(
                    ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG, ValueLayout.JAVA_INT));

    private HugePages() {}

    private static String describe(MemorySegment capture) {
        int errno = (int) ERRNO.get(capture, 0L);
        return errno == ENOMEM ? "ENOMEM: the system or this process's limits have no more memory" : "errno " + errno;
    }

    private static @Nullable MethodHandle find(String name, FunctionDescriptor descriptor) {
        if (!System.getProperty("os.name", "").startsWith("Linux")) {
            return null;
        }
        Linker linker = Linker.nativeLinker();
        SymbolLookup symbols = linker.defaultLookup();
        MemorySegment address = symbols.find(name).orElse(null);
        return address == null ? null : linker.downcallHandle(address, descriptor, ERRNO_CAPTURE);
    }

    /**
     * Why huge pages cannot be asked for.
     *
     * @return null if they can
     */
    public static @Nullable String unavailabilityCause() {
        if (MMAP == null || MUNMAP == null || MADVISE == null) {
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
     * @return zeroed memory that begins at a huge page
     * @throws OutOfMemoryError the system has no more
     */
    public static MemorySegment map(Arena arena, long lengthBytes) {
        MethodHandle mmap = MMAP;
        MethodHandle munmap = MUNMAP;
        MethodHandle madvise = MADVISE;
        if (mmap == null || munmap == null || madvise == null) {
            throw new IllegalStateException(unavailabilityCause());
        }
        // A page more than asked for, so that an aligned piece is inside.
        long mappedBytes = lengthBytes + PAGE_BYTES;
        try (Arena call = Arena.ofConfined()) {
            MemorySegment errno = call.allocate(ERRNO_LAYOUT);
            long address =
                    (long) mmap.invokeExact(errno, 0L, mappedBytes, PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS, -1, 0L);
            if (address == MAP_FAILED) {
                throw new OutOfMemoryError(
                        "mmap(" + mappedBytes + " bytes, MAP_PRIVATE|MAP_ANONYMOUS) failed with " + describe(errno));
            }
            MemorySegment.ofAddress(address).reinterpret(mappedBytes, arena, mapping -> unmap(munmap, mapping));
            long aligned = (address + PAGE_BYTES - 1) & -PAGE_BYTES;
            int refused = (int) madvise.invokeExact(errno, aligned, lengthBytes, MADV_HUGEPAGE);
            if (refused != 0) {
                throw new IllegalStateException("madvise(0x" + Long.toHexString(aligned) + ", " + lengthBytes
                        + ", MADV_HUGEPAGE) failed with " + describe(errno)
                        + "; switch BufferPoolOptions.hugePages off");
            }
            return MemorySegment.ofAddress(aligned).reinterpret(lengthBytes, arena, null);
        } catch (RuntimeException | Error known) {
            throw known;
        } catch (Throwable impossible) {
            throw new LinkageError("mmap(2) or madvise(2) could not be called", impossible);
        }
    }

    private static void unmap(MethodHandle munmap, MemorySegment mapping) {
        try (Arena call = Arena.ofConfined()) {
            int refused = (int) munmap.invokeExact(call.allocate(ERRNO_LAYOUT), mapping.address(), mapping.byteSize());
            assert refused == 0 : "munmap refused what mmap gave";
        } catch (RuntimeException | Error known) {
            throw known;
        } catch (Throwable impossible) {
            throw new LinkageError("munmap(2) could not be called", impossible);
        }
    }
}
