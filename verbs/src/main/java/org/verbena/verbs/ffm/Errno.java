package org.verbena.verbs.ffm;

import java.lang.foreign.Arena;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.VarHandle;
import java.util.Map;

/** The C library's {@code errno}: how to capture it after a call, and what its values are called. Source: errno(3). */
public final class Errno {
    public static final int EPERM = 1;
    public static final int ENOENT = 2;
    public static final int EINTR = 4;
    public static final int EIO = 5;
    public static final int ENXIO = 6;
    public static final int EBADF = 9;
    public static final int EAGAIN = 11;
    public static final int ENOMEM = 12;
    public static final int EACCES = 13;
    public static final int EFAULT = 14;
    public static final int EBUSY = 16;
    public static final int EEXIST = 17;
    public static final int ENODEV = 19;
    public static final int EINVAL = 22;
    public static final int EMFILE = 24;
    public static final int ENOSPC = 28;
    public static final int ENOSYS = 38;
    public static final int ENODATA = 61;
    public static final int EOPNOTSUPP = 95;
    public static final int EADDRINUSE = 98;
    public static final int EADDRNOTAVAIL = 99;
    public static final int ENETDOWN = 100;
    public static final int ENETUNREACH = 101;
    public static final int ECONNRESET = 104;
    public static final int EISCONN = 106;
    public static final int ENOTCONN = 107;
    public static final int ETIMEDOUT = 110;
    public static final int ECONNREFUSED = 111;
    public static final int EHOSTUNREACH = 113;

    private static final Map<Integer, String> NAMES = Map.ofEntries(
            Map.entry(EPERM, "EPERM"),
            Map.entry(ENOENT, "ENOENT"),
            Map.entry(EINTR, "EINTR"),
            Map.entry(EIO, "EIO"),
            Map.entry(ENXIO, "ENXIO"),
            Map.entry(EBADF, "EBADF"),
            Map.entry(EAGAIN, "EAGAIN"),
            Map.entry(ENOMEM, "ENOMEM"),
            Map.entry(EACCES, "EACCES"),
            Map.entry(EFAULT, "EFAULT"),
            Map.entry(EBUSY, "EBUSY"),
            Map.entry(EEXIST, "EEXIST"),
            Map.entry(ENODEV, "ENODEV"),
            Map.entry(EINVAL, "EINVAL"),
            Map.entry(EMFILE, "EMFILE"),
            Map.entry(ENOSPC, "ENOSPC"),
            Map.entry(ENOSYS, "ENOSYS"),
            Map.entry(ENODATA, "ENODATA"),
            Map.entry(EOPNOTSUPP, "EOPNOTSUPP"),
            Map.entry(EADDRINUSE, "EADDRINUSE"),
            Map.entry(EADDRNOTAVAIL, "EADDRNOTAVAIL"),
            Map.entry(ENETDOWN, "ENETDOWN"),
            Map.entry(ENETUNREACH, "ENETUNREACH"),
            Map.entry(ECONNRESET, "ECONNRESET"),
            Map.entry(EISCONN, "EISCONN"),
            Map.entry(ENOTCONN, "ENOTCONN"),
            Map.entry(ETIMEDOUT, "ETIMEDOUT"),
            Map.entry(ECONNREFUSED, "ECONNREFUSED"),
            Map.entry(EHOSTUNREACH, "EHOSTUNREACH"));

    /** Makes a downcall take, as its first argument (after a function pointer), a segment that receives errno. */
    public static final Linker.Option CAPTURE = Linker.Option.captureCallState("errno");

    private static final MemoryLayout LAYOUT = Linker.Option.captureStateLayout();
    private static final VarHandle ERRNO = LAYOUT.varHandle(MemoryLayout.PathElement.groupElement("errno"));

    private Errno() {}

    /**
     * Makes a segment for {@link #CAPTURE}. It belongs to the calling thread for as long as a call uses it: never put
     * it into a static field, or one thread reads another's errno.
     *
     * @param arena owns the segment
     * @return the segment
     */
    public static MemorySegment newCapture(Arena arena) {
        return arena.allocate(LAYOUT);
    }

    /**
     * What a call left.
     *
     * @param capture the segment that was given to the call
     * @return errno
     */
    public static int get(MemorySegment capture) {
        return (int) ERRNO.get(capture, 0L);
    }

    /**
     * The result of a call that returns -1 and sets errno if it fails.
     *
     * @param result what it returned
     * @param capture the segment that was given to it
     * @return what it returned, or errno as a negative number
     */
    public static int negated(int result, MemorySegment capture) {
        return result < 0 ? -get(capture) : result;
    }

    /**
     * What a value is called.
     *
     * @param errno a value
     * @return {@code ENOMEM}, or {@code errno 133} for one not in the list
     */
    public static String name(int errno) {
        String name = NAMES.get(errno);
        return name == null ? "errno " + errno : name;
    }
}
