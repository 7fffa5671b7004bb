package org.verbena.verbs.ffm;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SegmentAllocator;
import java.lang.foreign.StructLayout;
import java.lang.invoke.MethodHandle;

/**
 * The system calls on file descriptors that C libraries open, or take. This module's and cm's only binding of them. A
 * call that fails returns its errno as a negative number. Source: open(2), close(2), fcntl(2), poll(2)
 */
@SuppressWarnings("restricted") // binds functions of the C library
public final class FileDescriptors {
    public static final int F_GETFL = 3;
    public static final int F_SETFL = 4;

    /** The same on every Linux but MIPS, SPARC, Alpha and PA-RISC, where no JVM with FFM runs; as all that follow. */
    public static final int O_NONBLOCK = 0x800;

    public static final int O_CREAT = 0x40;
    public static final int O_CLOEXEC = 0x80000;
    public static final short POLLIN = 1;

    /** {@code struct pollfd} */
    public static final StructLayout POLLFD = CStruct.struct(
            "pollfd", CStruct.I32.withName("fd"), CStruct.U16.withName("events"), CStruct.U16.withName("revents"));

    private static final long FD = CStruct.offset(POLLFD, "fd");
    private static final long EVENTS = CStruct.offset(POLLFD, "events");
    private static final long REVENTS = CStruct.offset(POLLFD, "revents");

    /** {@code int fcntl(int fd, int op, ... int arg)} */
    private static final MethodHandle FCNTL = bind(
            "fcntl",
            FunctionDescriptor.of(CStruct.I32, CStruct.I32, CStruct.I32, CStruct.I32),
            Linker.Option.firstVariadicArg(2),
            Errno.CAPTURE);

    /** {@code int poll(struct pollfd *fds, nfds_t nfds, int timeout)} */
    private static final MethodHandle POLL =
            bind("poll", FunctionDescriptor.of(CStruct.I32, CStruct.PTR, CStruct.U64, CStruct.I32), Errno.CAPTURE);

    /** {@code int open(const char *pathname, int flags, ... mode_t mode)} */
    private static final MethodHandle OPEN = bind(
            "open",
            FunctionDescriptor.of(CStruct.I32, CStruct.PTR, CStruct.I32, CStruct.I32),
            Linker.Option.firstVariadicArg(2),
            Errno.CAPTURE);

    /** {@code int close(int fd)} */
    private static final MethodHandle CLOSE = bind("close", FunctionDescriptor.of(CStruct.I32, CStruct.I32));

    private FileDescriptors() {}

    private static MethodHandle bind(String name, FunctionDescriptor descriptor, Linker.Option... options) {
        Linker linker = Linker.nativeLinker();
        return linker.downcallHandle(linker.defaultLookup().findOrThrow(name), descriptor, options);
    }

    /**
     * Opens a file for reading, and makes an empty one if there is none.
     *
     * @param errno receives errno
     * @param path its name, ended by a zero byte
     * @param mode rights of a file that is made
     * @return a descriptor for {@link #close}, or a negative errno
     */
    public static int openOrCreate(MemorySegment errno, MemorySegment path, int mode) {
        try {
            int opened = (int) OPEN.invokeExact(errno, path.address(), O_CREAT | O_CLOEXEC, mode);
            return opened < 0 ? -Errno.get(errno) : opened;
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    /**
     * Closes a descriptor. Linux frees it whatever the call returns, so there is nothing to report: the error is one of
     * writing, and it was opened for reading.
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
     * Makes what {@link #poll} needs to wait until descriptors are readable.
     *
     * @param allocator owns the array
     * @param descriptors open descriptors
     * @return an array of {@code struct pollfd}
     */
    public static MemorySegment newPollfds(SegmentAllocator allocator, int... descriptors) {
        MemorySegment pollfds = allocator.allocate(POLLFD, descriptors.length);
        for (int i = 0; i < descriptors.length; i++) {
            pollfds.set(CStruct.I32, i * POLLFD.byteSize() + FD, descriptors[i]);
            pollfds.set(CStruct.U16, i * POLLFD.byteSize() + EVENTS, POLLIN);
        }
        return pollfds;
    }

    /**
     * Waits until a descriptor is readable or broken. A signal ends the wait early, with EINTR.
     *
     * @param errno receives errno
     * @param pollfds from {@link #newPollfds}
     * @param timeoutMillis the longest wait; negative waits forever
     * @return how many are ready, 0 if none became ready in time, or a negative errno
     */
    public static int poll(MemorySegment errno, MemorySegment pollfds, int timeoutMillis) {
        try {
            int ready = (int)
                    POLL.invokeExact(errno, pollfds.address(), pollfds.byteSize() / POLLFD.byteSize(), timeoutMillis);
            return ready < 0 ? -Errno.get(errno) : ready;
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    /**
     * Whether the last {@link #poll} found a descriptor ready.
     *
     * @param pollfds as given to it
     * @param index of the descriptor
     * @return true if it is readable or broken
     */
    public static boolean isReady(MemorySegment pollfds, int index) {
        return pollfds.get(CStruct.U16, index * POLLFD.byteSize() + REVENTS) != 0;
    }

    /**
     * Chooses what a read does where there is nothing to read.
     *
     * @param errno receives errno
     * @param descriptor an open descriptor
     * @param blocking true to wait, false to return at once with EAGAIN
     * @return 0, or a negative errno: the descriptor is not open
     */
    public static int setBlocking(MemorySegment errno, int descriptor, boolean blocking) {
        int flags = fcntl(errno, descriptor, F_GETFL, 0);
        if (flags < 0) {
            return flags;
        }
        return Math.min(0, fcntl(errno, descriptor, F_SETFL, blocking ? flags & ~O_NONBLOCK : flags | O_NONBLOCK));
    }

    private static int fcntl(MemorySegment errno, int descriptor, int operation, int argument) {
        try {
            int result = (int) FCNTL.invokeExact(errno, descriptor, operation, argument);
            return result < 0 ? -Errno.get(errno) : result;
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }
}
