package org.verbena.transport.verbs.ffm;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import org.jspecify.annotations.Nullable;
import org.verbena.verbs.ffm.Errno;
import org.verbena.verbs.ffm.NativeLibrary;

/**
 * The system calls of the native provider. Each wrapper has the C prototype above its handle and returns errno as a
 * negative number.
 */
public final class Libc {
    /** Another file is loaded if the property {@code org.verbena.transport.verbs.libc} names one. */
    private static final NativeLibrary LIBRARY = NativeLibrary.load(
            System.getProperty("org.verbena.transport.verbs.libc", "libc.so.6"),
            "The verbs provider runs on Linux with the GNU C library; elsewhere use the provider soft.");

    private Libc() {}

    /** Why the calls cannot be made: null if they can. */
    public static @Nullable Throwable unavailabilityCause() {
        return LIBRARY.unavailabilityCause();
    }

    /** Loaded with the first call, so that asking for the cause above never fails. */
    private static final class Handles {
        /** {@code int epoll_create1(int flags)}. */
        static final MethodHandle EPOLL_CREATE1 =
                required("epoll_create1", FunctionDescriptor.of(JAVA_INT, JAVA_INT), Errno.CAPTURE);

        /** {@code int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)}. */
        static final MethodHandle EPOLL_CTL = required(
                "epoll_ctl", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT, ADDRESS), Errno.CAPTURE);

        /** {@code int epoll_wait(int epfd, struct epoll_event *events, int maxevents, int timeout)}. */
        static final MethodHandle EPOLL_WAIT =
                required("epoll_wait", FunctionDescriptor.of(JAVA_INT, JAVA_INT, ADDRESS, JAVA_INT, JAVA_INT));

        /** As {@link #EPOLL_WAIT}, with the errno. */
        static final MethodHandle EPOLL_WAIT_ERRNO = required(
                "epoll_wait", FunctionDescriptor.of(JAVA_INT, JAVA_INT, ADDRESS, JAVA_INT, JAVA_INT), Errno.CAPTURE);

        /**
         * {@code int epoll_pwait2(int epfd, struct epoll_event *events, int maxevents, const struct timespec *timeout,
         * const sigset_t *sigmask)}; glibc 2.35 and Linux 5.11 have it.
         */
        static final @Nullable MethodHandle EPOLL_PWAIT2 = LIBRARY.function(
                "epoll_pwait2", FunctionDescriptor.of(JAVA_INT, JAVA_INT, ADDRESS, JAVA_INT, ADDRESS, ADDRESS));

        /** As {@link #EPOLL_PWAIT2}, with the errno. */
        static final @Nullable MethodHandle EPOLL_PWAIT2_ERRNO = LIBRARY.function(
                "epoll_pwait2",
                FunctionDescriptor.of(JAVA_INT, JAVA_INT, ADDRESS, JAVA_INT, ADDRESS, ADDRESS),
                Errno.CAPTURE);

        /** {@code int eventfd(unsigned int initval, int flags)}. */
        static final MethodHandle EVENTFD =
                required("eventfd", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT), Errno.CAPTURE);

        /** {@code int socket(int domain, int type, int protocol)}. */
        static final MethodHandle SOCKET =
                required("socket", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT), Errno.CAPTURE);

        /** {@code int bind(int sockfd, const struct sockaddr *addr, socklen_t addrlen)}. */
        static final MethodHandle BIND =
                required("bind", FunctionDescriptor.of(JAVA_INT, JAVA_INT, ADDRESS, JAVA_INT), Errno.CAPTURE);

        /** {@code ssize_t read(int fd, void *buf, size_t count)}. */
        static final MethodHandle READ =
                required("read", FunctionDescriptor.of(JAVA_LONG, JAVA_INT, ADDRESS, JAVA_LONG));

        /** {@code ssize_t write(int fd, const void *buf, size_t count)}. */
        static final MethodHandle WRITE =
                required("write", FunctionDescriptor.of(JAVA_LONG, JAVA_INT, ADDRESS, JAVA_LONG));

        /** {@code int close(int fd)}. */
        static final MethodHandle CLOSE = required("close", FunctionDescriptor.of(JAVA_INT, JAVA_INT));

        private Handles() {}

        private static MethodHandle required(String name, FunctionDescriptor descriptor, Linker.Option... options) {
            MethodHandle handle = LIBRARY.function(name, descriptor, options);
            if (handle == null) {
                throw new UnsatisfiedLinkError(LIBRARY + " has no " + name);
            }
            return handle;
        }
    }

    public static int epollCreate1(MemorySegment capture, int flags) {
        try {
            int fd = (int) Handles.EPOLL_CREATE1.invokeExact(capture, flags);
            return fd < 0 ? -Errno.get(capture) : fd;
        } catch (Throwable e) {
            throw rethrow(e);
        }
    }

    public static int epollCtl(MemorySegment capture, int epollFd, int operation, int fd, MemorySegment event) {
        try {
            int result = (int) Handles.EPOLL_CTL.invokeExact(capture, epollFd, operation, fd, event);
            return result < 0 ? -Errno.get(capture) : result;
        } catch (Throwable e) {
            throw rethrow(e);
        }
    }

    /**
     * Returns -1 on failure, without the errno: the JDK makes an object for each call with it. {@link
     * #epollWaitErrno} tells why.
     */
    public static int epollWait(int epollFd, MemorySegment events, int maxEvents, int timeoutMillis) {
        try {
            return (int) Handles.EPOLL_WAIT.invokeExact(epollFd, events, maxEvents, timeoutMillis);
        } catch (Throwable e) {
            throw rethrow(e);
        }
    }

    /** As {@link #epollWait}, with the errno as a negative number. */
    public static int epollWaitErrno(
            MemorySegment capture, int epollFd, MemorySegment events, int maxEvents, int timeoutMillis) {
        try {
            int count = (int) Handles.EPOLL_WAIT_ERRNO.invokeExact(capture, epollFd, events, maxEvents, timeoutMillis);
            return count < 0 ? -Errno.get(capture) : count;
        } catch (Throwable e) {
            throw rethrow(e);
        }
    }

    /** Returns -1 on failure, and without the call in the C library; {@link #epollPwait2Errno} tells why. */
    public static int epollPwait2(int epollFd, MemorySegment events, int maxEvents, MemorySegment timeout) {
        MethodHandle handle = Handles.EPOLL_PWAIT2;
        if (handle == null) {
            return -1;
        }
        try {
            return (int) handle.invokeExact(epollFd, events, maxEvents, timeout, MemorySegment.NULL);
        } catch (Throwable e) {
            throw rethrow(e);
        }
    }

    /** As {@link #epollPwait2}, with the errno: -ENOSYS if the C library or the kernel is too old for it. */
    public static int epollPwait2Errno(
            MemorySegment capture, int epollFd, MemorySegment events, int maxEvents, MemorySegment timeout) {
        MethodHandle handle = Handles.EPOLL_PWAIT2_ERRNO;
        if (handle == null) {
            return -Errno.ENOSYS;
        }
        try {
            int count = (int) handle.invokeExact(capture, epollFd, events, maxEvents, timeout, MemorySegment.NULL);
            return count < 0 ? -Errno.get(capture) : count;
        } catch (Throwable e) {
            throw rethrow(e);
        }
    }

    public static int eventFd(MemorySegment capture, int initialValue, int flags) {
        try {
            int fd = (int) Handles.EVENTFD.invokeExact(capture, initialValue, flags);
            return fd < 0 ? -Errno.get(capture) : fd;
        } catch (Throwable e) {
            throw rethrow(e);
        }
    }

    public static int socket(MemorySegment capture, int domain, int type, int protocol) {
        try {
            int fd = (int) Handles.SOCKET.invokeExact(capture, domain, type, protocol);
            return fd < 0 ? -Errno.get(capture) : fd;
        } catch (Throwable e) {
            throw rethrow(e);
        }
    }

    public static int bind(MemorySegment capture, int fd, MemorySegment address) {
        try {
            int result = (int) Handles.BIND.invokeExact(capture, fd, address, (int) address.byteSize());
            return result < 0 ? -Errno.get(capture) : result;
        } catch (Throwable e) {
            throw rethrow(e);
        }
    }

    /** Returns -1 on failure, without the errno: what is read here does not block, and fails when it is empty. */
    public static long read(int fd, MemorySegment buffer, long bytes) {
        try {
            return (long) Handles.READ.invokeExact(fd, buffer, bytes);
        } catch (Throwable e) {
            throw rethrow(e);
        }
    }

    /**
     * Returns -1 on failure, without the errno: what is written here is an eventfd, which fails only when it is full,
     * and so readable.
     */
    public static long write(int fd, MemorySegment buffer, long bytes) {
        try {
            return (long) Handles.WRITE.invokeExact(fd, buffer, bytes);
        } catch (Throwable e) {
            throw rethrow(e);
        }
    }

    /** On Linux the descriptor is gone whatever close(2) returns, so there is nothing to retry. */
    public static void close(int fd) {
        try {
            int ignored = (int) Handles.CLOSE.invokeExact(fd);
        } catch (Throwable e) {
            throw rethrow(e);
        }
    }

    /** What to throw for a call that failed. */
    public static UncheckedIOException failure(String call, int errno) {
        String hint = errno == Errno.EMFILE ? ": the process has too many open descriptors, raise `ulimit -n`" : "";
        return new UncheckedIOException(new IOException(call + " failed with " + Errno.name(errno) + hint));
    }

    private static RuntimeException rethrow(Throwable thrown) {
        if (thrown instanceof Error error) {
            throw error;
        }
        if (thrown instanceof RuntimeException exception) {
            throw exception;
        }
        return new IllegalStateException("a method handle threw", thrown);
    }
}
