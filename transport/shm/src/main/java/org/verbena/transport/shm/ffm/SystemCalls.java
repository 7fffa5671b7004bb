package org.verbena.transport.shm.ffm;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import org.verbena.transport.ffm.Errno;
import org.verbena.transport.ffm.ErrnoException;

/** The system calls of this provider, each with its C prototype. None of them waits for a peer. Any thread. */
@SuppressWarnings("restricted") // links functions of the C library
final class SystemCalls {
    static final int F_ADD_SEALS = 1033;
    static final int F_GET_SEALS = 1034;
    static final int O_RDONLY = 0;
    static final int O_RDWR = 2;
    static final int O_NONBLOCK = 0x800;
    static final int O_CLOEXEC = 0x80000;
    static final int O_PATH = 0x200000;
    static final int AT_FDCWD = -100;
    private static final int AT_EMPTY_PATH = 0x1000;

    /** Reports what the kernel knows, without asking a file system in a process, such as FUSE. */
    private static final int AT_STATX_DONT_SYNC = 0x4000;

    private static final int STATX_BASIC_STATS = 0x7ff;
    private static final int AF_UNIX = 1;
    private static final int SOCK_STREAM_NONBLOCK_CLOEXEC = 1 | 0x800 | 0x80000;

    /** {@code struct statx}, which is the same on all processors. Source: statx(2) */
    private static final int STATX_BYTES = 256;

    private static final int STX_UID = 20;
    private static final int STX_MODE = 28;
    private static final int STX_INO = 32;
    private static final int STX_SIZE = 40;
    private static final int STX_DEV_MAJOR = 136;
    private static final int STX_DEV_MINOR = 140;
    private static final int S_IFMT = 0xf000;
    private static final int S_IFREG = 0x8000;

    /** {@code struct sockaddr_un}: the family and 108 bytes of path. Source: unix(7) */
    private static final int SOCKADDR_UN_BYTES = 110;

    /** {@code int memfd_create(const char *name, unsigned int flags);} */
    private static final MethodHandle MEMFD_CREATE =
            find("memfd_create", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_INT));

    /** {@code int ftruncate(int fd, off_t length);} */
    private static final MethodHandle FTRUNCATE =
            find("ftruncate", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_LONG));

    /** {@code int madvise(void *addr, size_t length, int advice);} */
    private static final MethodHandle MADVISE =
            find("madvise", FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_INT));

    /** {@code int getpagesize(void);} */
    private static final MethodHandle GETPAGESIZE = find("getpagesize", FunctionDescriptor.of(JAVA_INT));

    /** {@code int fcntl(int fd, int op, ... int arg);} */
    private static final MethodHandle FCNTL = find(
            "fcntl", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT), Linker.Option.firstVariadicArg(2));

    /** {@code int openat(int dirfd, const char *pathname, int flags, ... mode_t mode);} */
    private static final MethodHandle OPENAT = find(
            "openat",
            FunctionDescriptor.of(JAVA_INT, JAVA_INT, ADDRESS, JAVA_INT, JAVA_INT),
            Linker.Option.firstVariadicArg(3));

    /** {@code int statx(int dirfd, const char *pathname, int flags, unsigned int mask, struct statx *statxbuf);} */
    private static final MethodHandle STATX =
            find("statx", FunctionDescriptor.of(JAVA_INT, JAVA_INT, ADDRESS, JAVA_INT, JAVA_INT, ADDRESS));

    /** {@code uid_t geteuid(void);} */
    private static final MethodHandle GETEUID = find("geteuid", FunctionDescriptor.of(JAVA_INT));

    /** {@code int close(int fd);} */
    private static final MethodHandle CLOSE = find("close", FunctionDescriptor.of(JAVA_INT, JAVA_INT));

    /** {@code int socket(int domain, int type, int protocol);} */
    private static final MethodHandle SOCKET =
            find("socket", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT));

    /** {@code int connect(int sockfd, const struct sockaddr *addr, socklen_t addrlen);} */
    private static final MethodHandle CONNECT =
            find("connect", FunctionDescriptor.of(JAVA_INT, JAVA_INT, ADDRESS, JAVA_INT));

    /**
     * What a file is.
     *
     * @param mode of {@code stx_mode}
     */
    record Status(int uid, int mode, FileIdentity identity, long lengthBytes) {
        boolean isRegular() {
            return (mode & S_IFMT) == S_IFREG;
        }
    }

    private SystemCalls() {}

    private static MethodHandle find(String name, FunctionDescriptor descriptor, Linker.Option... more) {
        Linker linker = Linker.nativeLinker();
        SymbolLookup symbols = linker.defaultLookup();
        MemorySegment address =
                symbols.find(name).orElseThrow(() -> new UnsatisfiedLinkError("the C library has no " + name));
        Linker.Option[] options = new Linker.Option[more.length + 1];
        System.arraycopy(more, 0, options, 0, more.length);
        options[more.length] = Errno.CAPTURE;
        return linker.downcallHandle(address, descriptor, options);
    }

    private static int check(String call, int result, MemorySegment errno) throws ErrnoException {
        if (result < 0) {
            throw new ErrnoException(call, Errno.get(errno));
        }
        return result;
    }

    private static RuntimeException impossible(Throwable thrown) {
        if (thrown instanceof RuntimeException known) {
            throw known;
        }
        if (thrown instanceof Error known) {
            throw known;
        }
        throw new LinkageError("a method handle threw", thrown);
    }

    static int memfdCreate(String name, int flags) throws ErrnoException {
        try (Arena call = Arena.ofConfined()) {
            MemorySegment errno = Errno.newCapture(call);
            int made = (int) MEMFD_CREATE.invokeExact(errno, call.allocateFrom(name), flags);
            return check("memfd_create", made, errno);
        } catch (ErrnoException refused) {
            throw refused;
        } catch (Throwable t) {
            throw impossible(t);
        }
    }

    static void truncate(int descriptor, long lengthBytes) throws ErrnoException {
        try (Arena call = Arena.ofConfined()) {
            MemorySegment errno = Errno.newCapture(call);
            int done = (int) FTRUNCATE.invokeExact(errno, descriptor, lengthBytes);
            check("ftruncate(" + lengthBytes + " bytes)", done, errno);
        } catch (ErrnoException refused) {
            throw refused;
        } catch (Throwable t) {
            throw impossible(t);
        }
    }

    static void advise(String name, long address, long lengthBytes, int advice) throws ErrnoException {
        try (Arena call = Arena.ofConfined()) {
            MemorySegment errno = Errno.newCapture(call);
            int done = (int) MADVISE.invokeExact(errno, address, lengthBytes, advice);
            check("madvise(" + lengthBytes + " bytes, " + name + ")", done, errno);
        } catch (ErrnoException refused) {
            throw refused;
        } catch (Throwable t) {
            throw impossible(t);
        }
    }

    static int pageBytes() {
        try (Arena call = Arena.ofConfined()) {
            return (int) GETPAGESIZE.invokeExact(Errno.newCapture(call));
        } catch (Throwable t) {
            throw impossible(t);
        }
    }

    static int fcntl(String name, int descriptor, int operation, int argument) throws ErrnoException {
        try (Arena call = Arena.ofConfined()) {
            MemorySegment errno = Errno.newCapture(call);
            int result = (int) FCNTL.invokeExact(errno, descriptor, operation, argument);
            return check("fcntl(" + name + ")", result, errno);
        } catch (ErrnoException refused) {
            throw refused;
        } catch (Throwable t) {
            throw impossible(t);
        }
    }

    /** Opens a file; {@code name} is what the message calls it. */
    static int open(int directory, String path, int flags, String name) throws ErrnoException {
        try (Arena call = Arena.ofConfined()) {
            MemorySegment errno = Errno.newCapture(call);
            int opened = (int) OPENAT.invokeExact(errno, directory, call.allocateFrom(path), flags | O_CLOEXEC, 0);
            return check("open(" + name + ")", opened, errno);
        } catch (ErrnoException refused) {
            throw refused;
        } catch (Throwable t) {
            throw impossible(t);
        }
    }

    /** Queries a file without opening it; with an empty path, the directory itself. */
    static Status status(int directory, String path, String name) throws ErrnoException {
        try (Arena call = Arena.ofConfined()) {
            MemorySegment errno = Errno.newCapture(call);
            MemorySegment status = call.allocate(STATX_BYTES, 8);
            int done = (int) STATX.invokeExact(
                    errno,
                    directory,
                    call.allocateFrom(path),
                    AT_STATX_DONT_SYNC | (path.isEmpty() ? AT_EMPTY_PATH : 0),
                    STATX_BASIC_STATS,
                    status);
            check("statx(" + name + ")", done, errno);
            long device = ((long) status.get(JAVA_INT, STX_DEV_MAJOR) << 32)
                    | (status.get(JAVA_INT, STX_DEV_MINOR) & 0xffff_ffffL);
            return new Status(
                    status.get(JAVA_INT, STX_UID),
                    status.get(JAVA_SHORT, STX_MODE) & 0xffff,
                    new FileIdentity(device, status.get(JAVA_LONG, STX_INO)),
                    status.get(JAVA_LONG, STX_SIZE));
        } catch (ErrnoException refused) {
            throw refused;
        } catch (Throwable t) {
            throw impossible(t);
        }
    }

    static int effectiveUser() {
        try (Arena call = Arena.ofConfined()) {
            return (int) GETEUID.invokeExact(Errno.newCapture(call));
        } catch (Throwable t) {
            throw impossible(t);
        }
    }

    static void close(int descriptor) {
        try (Arena call = Arena.ofConfined()) {
            @SuppressWarnings("UnusedVariable") // the descriptor is gone whatever close(2) says
            int refused = (int) CLOSE.invokeExact(Errno.newCapture(call), descriptor);
        } catch (Throwable t) {
            throw impossible(t);
        }
    }

    /**
     * Connects to a socket by its name, without waiting, and closes the connection; returns errno, 0 if it was
     * accepted.
     */
    static int tryConnect(byte[] path) throws ErrnoException {
        try (Arena call = Arena.ofConfined()) {
            MemorySegment errno = Errno.newCapture(call);
            int socket = (int) SOCKET.invokeExact(errno, AF_UNIX, SOCK_STREAM_NONBLOCK_CLOEXEC, 0);
            check("socket(AF_UNIX)", socket, errno);
            try {
                MemorySegment address = call.allocate(SOCKADDR_UN_BYTES, 2);
                if (path.length > SOCKADDR_UN_BYTES - 3) {
                    return Errno.ENAMETOOLONG;
                }
                address.set(JAVA_SHORT, 0, (short) AF_UNIX);
                MemorySegment.copy(path, 0, address, JAVA_BYTE, 2, path.length);
                int done = (int) CONNECT.invokeExact(errno, socket, address, SOCKADDR_UN_BYTES);
                return done == 0 ? 0 : Errno.get(errno);
            } finally {
                close(socket);
            }
        } catch (ErrnoException refused) {
            throw refused;
        } catch (Throwable t) {
            throw impossible(t);
        }
    }
}
