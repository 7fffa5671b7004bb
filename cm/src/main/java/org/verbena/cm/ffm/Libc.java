package org.verbena.cm.ffm;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.Errno;
import org.verbena.verbs.ffm.NativeLibrary;

/** What waiting on a descriptor takes of the C library. */
@SuppressWarnings("restricted") // downcalls
public final class Libc {
    public static final int F_GETFL = 3;
    public static final int F_SETFL = 4;
    public static final int O_NONBLOCK = 0x800;
    public static final short POLLIN = 1;

    /** {@code struct pollfd}. Source: poll(2) */
    public static final StructLayout POLLFD = CStruct.struct(
            "pollfd", CStruct.I32.withName("fd"), CStruct.U16.withName("events"), CStruct.U16.withName("revents"));

    public static final long POLLFD_FD = CStruct.offset(POLLFD, "fd");
    public static final long POLLFD_EVENTS = CStruct.offset(POLLFD, "events");
    public static final long POLLFD_REVENTS = CStruct.offset(POLLFD, "revents");

    private static final MethodHandle POLL = Linker.nativeLinker()
            .downcallHandle(
                    symbol("poll"),
                    FunctionDescriptor.of(CStruct.I32, CStruct.PTR, CStruct.U64, CStruct.I32),
                    Errno.CAPTURE);

    private static final MethodHandle FCNTL = Linker.nativeLinker()
            .downcallHandle(
                    symbol("fcntl"),
                    FunctionDescriptor.of(CStruct.I32, CStruct.I32, CStruct.I32, CStruct.I32),
                    Errno.CAPTURE,
                    Linker.Option.firstVariadicArg(2));

    private Libc() {}

    private static MemorySegment symbol(String name) {
        SymbolLookup symbols = Linker.nativeLinker().defaultLookup();
        return symbols.find(name).orElseThrow(() -> new UnsupportedOperationException("the C library has no " + name));
    }

    /** {@code int poll(struct pollfd *fds, nfds_t nfds, int timeout);} Source: poll(2) */
    public static int poll(MemorySegment errno, long fds, long nfds, int timeoutMillis) {
        try {
            return (int) POLL.invokeExact(errno, fds, nfds, timeoutMillis);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    /** {@code int fcntl(int fd, int cmd, int arg);} Source: fcntl(2) */
    public static int fcntl(MemorySegment errno, int fd, int command, int argument) {
        try {
            return (int) FCNTL.invokeExact(errno, fd, command, argument);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }
}
