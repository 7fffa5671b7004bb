package org.verbena.verbs.ffm;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.invoke.MethodHandle;

/** What has to be done to file descriptors that C libraries open, or want to be given. Source: open(2), close(2), fcntl(2), poll(2) */
@SuppressWarnings("restricted") // binds a function of the C library
public final class FileDescriptors {
    private static final int F_GETFL = 3;
    private static final int F_SETFL = 4;

    /** The same on every Linux but MIPS, SPARC, Alpha and PA-RISC, where no JVM with FFM runs. */
    private static final int O_NONBLOCK = 0x800;

    /** {@code int fcntl(int fd, int op, ... int arg)} */
    private static final MethodHandle FCNTL = Linker.nativeLinker()
            .downcallHandle(
                    Linker.nativeLinker().defaultLookup().findOrThrow("fcntl"),
                    FunctionDescriptor.of(CStruct.I32, CStruct.I32, CStruct.I32, CStruct.I32),
                    Linker.Option.firstVariadicArg(2),
                    Errno.CAPTURE);

    /** {@code struct pollfd} */
    private static final StructLayout POLLFD = CStruct.struct(
            "pollfd", CStruct.I32.withName("fd"), CStruct.U16.withName("events"), CStruct.U16.withName("revents"));

    private static final short POLLIN = 1;

    /** {@code int poll(struct pollfd *fds, nfds_t nfds, int timeout)} */
    private static final MethodHandle POLL = Linker.nativeLinker()
            .downcallHandle(
                    Linker.nativeLinker().defaultLookup().findOrThrow("poll"),
                    FunctionDescriptor.of(CStruct.I32, CStruct.PTR, CStruct.U64, CStruct.I32));

    /** As {@link #O_NONBLOCK}. */
    private static final int O_CREAT = 0x40;

    private static final int O_CLOEXEC = 0x80000;

    /** {@code int open(const char *pathname, int flags, ... mode_t mode)} */
    private static final MethodHandle OPEN = Linker.nativeLinker()
            .downcallHandle(
                    Linker.nativeLinker().defaultLookup().findOrThrow("open"),
                    FunctionDescriptor.of(CStruct.I32, CStruct.PTR, CStruct.I32, CStruct.I32),
                    Linker.Option.firstVariadicArg(2),
                    Errno.CAPTURE);

    /** {@code int close(int fd)} */
    private static final MethodHandle CLOSE = Linker.nativeLinker()
            .downcallHandle(
                    Linker.nativeLinker().defaultLookup().findOrThrow("close"),
                    FunctionDescriptor.of(CStruct.I32, CStruct.I32));

    private FileDescriptors() {}

    /**
     * Opens a file for reading, and makes an empty one if there is none.
     *
     * @param errno receives errno
     * @param path its name, ended by a zero byte
     * @param mode rights of a file that is made
     * @return a descriptor for {@link #close}, or -1
     */
    public static int openOrCreate(MemorySegment errno, MemorySegment path, int mode) {
        try {
            return (int) OPEN.invokeExact(errno, path.address(), O_CREAT | O_CLOEXEC, mode);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    /**
     * Gives a descriptor back. What a failure would tell, of data that was not written, cannot be: it was opened for reading.
     *
     * @param descriptor an open descriptor
     */
    public static void close(int descriptor) {
        try {
            int ignored = (int) CLOSE.invokeExact(descriptor);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    /**
     * Makes what {@link #awaitReadable} needs.
     *
     * @param arena how long it is needed
     * @param descriptor an open descriptor
     * @return a {@code struct pollfd}
     */
    public static MemorySegment newPollfd(Arena arena, int descriptor) {
        MemorySegment pollfd = arena.allocate(POLLFD);
        pollfd.set(CStruct.I32, CStruct.offset(POLLFD, "fd"), descriptor);
        pollfd.set(CStruct.U16, CStruct.offset(POLLFD, "events"), POLLIN);
        return pollfd;
    }

    /**
     * Waits until there is something to read, or for some time. May return early.
     *
     * @param pollfd from {@link #newPollfd}
     * @param timeoutNanos how long at the most
     */
    public static void awaitReadable(MemorySegment pollfd, long timeoutNanos) {
        int millis = (int) Math.min(Integer.MAX_VALUE, (timeoutNanos + 999_999) / 1_000_000);
        try {
            int ready = (int) POLL.invokeExact(pollfd.address(), 1L, Math.max(0, millis));
            if (ready < 0) {
                Thread.onSpinWait(); // EINTR: the caller looks at its clock
            }
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    /**
     * Chooses what a read does where there is nothing to read.
     *
     * @param errno receives errno
     * @param descriptor an open descriptor
     * @param blocking true to wait, false to return at once with EAGAIN
     * @throws IllegalStateException it is not open
     */
    public static void setBlocking(MemorySegment errno, int descriptor, boolean blocking) {
        int flags = fcntl(errno, descriptor, F_GETFL, 0);
        int wanted = blocking ? flags & ~O_NONBLOCK : flags | O_NONBLOCK;
        if (flags < 0 || fcntl(errno, descriptor, F_SETFL, wanted) < 0) {
            throw new IllegalStateException(
                    "fcntl(" + descriptor + ", O_NONBLOCK) failed with " + Errno.name(Errno.get(errno)));
        }
    }

    private static int fcntl(MemorySegment errno, int descriptor, int operation, int argument) {
        try {
            return (int) FCNTL.invokeExact(errno, descriptor, operation, argument);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }
}
