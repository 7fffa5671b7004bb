package org.verbena.verbs.ffm;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.SegmentAllocator;

/**
 * The system calls on file descriptors that C libraries open, or take. A call that fails returns its errno as a
 * negative number. Source: open(2), close(2), fcntl(2), poll(2)
 */
public final class FileDescriptors {
    public static final int F_GETFL = 3;
    public static final int F_SETFL = 4;

    /** The same on every Linux but MIPS, SPARC, Alpha and PA-RISC, where no JVM with FFM runs; as all that follow. */
    public static final int O_NONBLOCK = 0x800;

    public static final int O_CREAT = 0x40;
    public static final int O_CLOEXEC = 0x80000;
    public static final short POLLIN = 1;

    private FileDescriptors() {}

    /**
     * Opens a file for reading, and makes an empty one if there is none.
     *
     * @param errno receives errno
     * @param path its name, ended by a zero byte
     * @param mode rights of a file that is made
     * @return a descriptor for {@link #close}, or a negative errno
     */
    public static int openOrCreate(MemorySegment errno, MemorySegment path, int mode) {
        return Posix.open(errno, path.address(), O_CREAT | O_CLOEXEC, mode);
    }

    /**
     * Closes a descriptor. Linux frees it whatever the call returns, so there is nothing to report: the error is one of
     * writing, and it was opened for reading.
     *
     * @param descriptor an open descriptor
     */
    public static void close(int descriptor) {
        Posix.close(descriptor);
    }

    /**
     * Makes what {@link #poll} needs to wait until descriptors are readable.
     *
     * @param allocator owns the array
     * @param descriptors open descriptors
     * @return an array of {@code struct pollfd}
     */
    public static MemorySegment newPollfds(SegmentAllocator allocator, int... descriptors) {
        MemorySegment pollfds = allocator.allocate(Pollfd.LAYOUT, descriptors.length);
        for (int i = 0; i < descriptors.length; i++) {
            pollfds.set(CStruct.I32, i * Pollfd.SIZE + Pollfd.FD, descriptors[i]);
            pollfds.set(CStruct.U16, i * Pollfd.SIZE + Pollfd.EVENTS, POLLIN);
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
        return Posix.poll(errno, pollfds.address(), pollfds.byteSize() / Pollfd.SIZE, timeoutMillis);
    }

    /**
     * Whether the last {@link #poll} found a descriptor ready.
     *
     * @param pollfds as given to it
     * @param index of the descriptor
     * @return true if it is readable or broken
     */
    public static boolean isReady(MemorySegment pollfds, int index) {
        return pollfds.get(CStruct.U16, index * Pollfd.SIZE + Pollfd.REVENTS) != 0;
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
        int flags = Posix.fcntl(errno, descriptor, F_GETFL, 0);
        if (flags < 0) {
            return flags;
        }
        int wanted = blocking ? flags & ~O_NONBLOCK : flags | O_NONBLOCK;
        return Math.min(0, Posix.fcntl(errno, descriptor, F_SETFL, wanted));
    }
}
