package org.verbena.transport.ffm;

import java.lang.foreign.Arena;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.invoke.VarHandle;
import java.util.Map;

/** Linux's error numbers: how to capture one behind a call, its name, and what can be done. Source: errno(3) */
public final class Errno {
    /** Not permitted. */
    public static final int EPERM = 1;

    /** No such file. */
    public static final int ENOENT = 2;

    /** No such process. */
    public static final int ESRCH = 3;

    /** A signal came. */
    public static final int EINTR = 4;

    /** Not without waiting. */
    public static final int EAGAIN = 11;

    /** No memory, or no more mappings. */
    public static final int ENOMEM = 12;

    /** No permission. */
    public static final int EACCES = 13;

    /** In use. */
    public static final int EBUSY = 16;

    /** Invalid argument. */
    public static final int EINVAL = 22;

    /** The system has too many open files. */
    public static final int ENFILE = 23;

    /** The process has too many open files. */
    public static final int EMFILE = 24;

    /** File too large. */
    public static final int EFBIG = 27;

    /** No space left. */
    public static final int ENOSPC = 28;

    /** Read-only file system. */
    public static final int EROFS = 30;

    /** Name too long. */
    public static final int ENAMETOOLONG = 36;

    /** No such system call. */
    public static final int ENOSYS = 38;

    /** The time is over. */
    public static final int ETIME = 62;

    /** No buffer is left. */
    public static final int ENOBUFS = 105;

    /** Nobody listens. */
    public static final int ECONNREFUSED = 111;

    /** It was cancelled. */
    public static final int ECANCELED = 125;

    private static final Map<Integer, String> NAMES = Map.ofEntries(
            Map.entry(EPERM, "EPERM: the system's settings or a sandbox (seccomp, an LSM) do not allow it"),
            Map.entry(ENOENT, "ENOENT: there is none"),
            Map.entry(ESRCH, "ESRCH: the process has ended"),
            Map.entry(5, "EIO"),
            Map.entry(9, "EBADF"),
            Map.entry(EAGAIN, "EAGAIN: not now"),
            Map.entry(ENOMEM, "ENOMEM: the system, its vm.max_map_count or this process's limits have no more memory"),
            Map.entry(EACCES, "EACCES: this process is not permitted to"),
            Map.entry(14, "EFAULT"),
            Map.entry(EBUSY, "EBUSY"),
            Map.entry(17, "EEXIST"),
            Map.entry(20, "ENOTDIR"),
            Map.entry(EINVAL, "EINVAL: the kernel does not support it"),
            Map.entry(ENFILE, "ENFILE: the system has too many open files, raise fs.file-max"),
            Map.entry(EMFILE, "EMFILE: the process has too many open descriptors, raise `ulimit -n`"),
            Map.entry(EFBIG, "EFBIG: over the limit of a file's size, raise `ulimit -f`"),
            Map.entry(ENOSPC, "ENOSPC: no space is left"),
            Map.entry(EROFS, "EROFS: the file system is read-only"),
            Map.entry(32, "EPIPE"),
            Map.entry(ENAMETOOLONG, "ENAMETOOLONG"),
            Map.entry(ENOSYS, "ENOSYS: the kernel is too old, or a sandbox (seccomp) hides the call"),
            Map.entry(40, "ELOOP"),
            Map.entry(95, "EOPNOTSUPP"),
            Map.entry(98, "EADDRINUSE"),
            Map.entry(99, "EADDRNOTAVAIL"),
            Map.entry(104, "ECONNRESET"),
            Map.entry(ECONNREFUSED, "ECONNREFUSED: nobody listens there"));

    /** Makes a downcall take, as its first argument, a segment that receives errno. */
    public static final Linker.Option CAPTURE = Linker.Option.captureCallState("errno");

    private static final StructLayout LAYOUT = Linker.Option.captureStateLayout();
    private static final VarHandle ERRNO = LAYOUT.varHandle(MemoryLayout.PathElement.groupElement("errno"));

    private Errno() {}

    /**
     * Makes a segment for {@link #CAPTURE}, for one thread.
     *
     * @param arena owns it
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
     * Describes a number for messages.
     *
     * @param errno of a call that failed
     * @return its symbol, usually with its meaning or a remedy
     */
    public static String describe(int errno) {
        String known = NAMES.get(errno);
        return known == null ? "errno " + errno : known;
    }
}
