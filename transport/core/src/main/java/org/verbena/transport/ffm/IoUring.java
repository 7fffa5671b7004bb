package org.verbena.transport.ffm;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.ByteOrder;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The system calls of io_uring, its structures and numbers, and the few calls on descriptors that its users need. A
 * call that fails returns its errno as a negative number. Linux only. Source: linux/io_uring.h, io_uring_setup(2),
 * io_uring_enter(2), io_uring_register(2)
 */
@SuppressWarnings({"restricted", "doclint:missing"}) // downcalls, and names that the kernel documents
public final class IoUring {
    // The numbers of these calls are the same on all architectures but Alpha.
    private static final long SETUP = 425;
    private static final long ENTER = 426;
    private static final long REGISTER = 427;

    /** {@code struct io_uring_sqe}, with one name of each union. */
    public static final StructLayout SQE = struct(
            "io_uring_sqe",
            JAVA_BYTE.withName("opcode"),
            JAVA_BYTE.withName("flags"),
            JAVA_SHORT.withName("ioprio"),
            JAVA_INT.withName("fd"),
            JAVA_LONG.withName("off"),
            JAVA_LONG.withName("addr"),
            JAVA_INT.withName("len"),
            JAVA_INT.withName("msg_flags"),
            JAVA_LONG.withName("user_data"),
            JAVA_SHORT.withName("buf_group"),
            JAVA_SHORT.withName("personality"),
            JAVA_INT.withName("file_index"),
            JAVA_LONG.withName("addr3"),
            MemoryLayout.paddingLayout(8));

    /** {@code struct io_uring_cqe} */
    public static final StructLayout CQE = struct(
            "io_uring_cqe", JAVA_LONG.withName("user_data"), JAVA_INT.withName("res"), JAVA_INT.withName("flags"));

    /** {@code struct io_sqring_offsets} */
    public static final StructLayout SQ_OFFSETS = struct(
            "io_sqring_offsets",
            JAVA_INT.withName("head"),
            JAVA_INT.withName("tail"),
            JAVA_INT.withName("ring_mask"),
            JAVA_INT.withName("ring_entries"),
            JAVA_INT.withName("flags"),
            JAVA_INT.withName("dropped"),
            JAVA_INT.withName("array"),
            MemoryLayout.paddingLayout(12));

    /** {@code struct io_cqring_offsets} */
    public static final StructLayout CQ_OFFSETS = struct(
            "io_cqring_offsets",
            JAVA_INT.withName("head"),
            JAVA_INT.withName("tail"),
            JAVA_INT.withName("ring_mask"),
            JAVA_INT.withName("ring_entries"),
            JAVA_INT.withName("overflow"),
            JAVA_INT.withName("cqes"),
            JAVA_INT.withName("flags"),
            MemoryLayout.paddingLayout(12));

    /** {@code struct io_uring_params} */
    public static final StructLayout PARAMS = struct(
            "io_uring_params",
            JAVA_INT.withName("sq_entries"),
            JAVA_INT.withName("cq_entries"),
            JAVA_INT.withName("flags"),
            JAVA_INT.withName("sq_thread_cpu"),
            JAVA_INT.withName("sq_thread_idle"),
            JAVA_INT.withName("features"),
            JAVA_INT.withName("wq_fd"),
            MemoryLayout.paddingLayout(12),
            SQ_OFFSETS.withName("sq_off"),
            CQ_OFFSETS.withName("cq_off"));

    /** {@code struct io_uring_getevents_arg} */
    public static final StructLayout WAIT = struct(
            "io_uring_getevents_arg",
            JAVA_LONG.withName("sigmask"),
            JAVA_INT.withName("sigmask_sz"),
            MemoryLayout.paddingLayout(4),
            JAVA_LONG.withName("ts"));

    /** {@code struct __kernel_timespec} */
    public static final StructLayout TIMESPEC =
            struct("__kernel_timespec", JAVA_LONG.withName("tv_sec"), JAVA_LONG.withName("tv_nsec"));

    /** {@code struct io_uring_buf}; the tail of a ring of them is in the last two bytes of the first. */
    public static final StructLayout BUFFER = struct(
            "io_uring_buf",
            JAVA_LONG.withName("addr"),
            JAVA_INT.withName("len"),
            JAVA_SHORT.withName("bid"),
            JAVA_SHORT.withName("resv"));

    /** {@code struct io_uring_buf_reg} */
    public static final StructLayout BUFFER_RING = struct(
            "io_uring_buf_reg",
            JAVA_LONG.withName("ring_addr"),
            JAVA_INT.withName("ring_entries"),
            JAVA_SHORT.withName("bgid"),
            MemoryLayout.paddingLayout(26));

    /** {@code struct io_uring_probe_op} */
    public static final StructLayout PROBE_OPERATION = struct(
            "io_uring_probe_op",
            JAVA_BYTE.withName("op"),
            JAVA_BYTE.withName("resv"),
            JAVA_SHORT.withName("flags"),
            MemoryLayout.paddingLayout(4));

    /** {@code struct io_uring_probe}, before its operations. */
    public static final StructLayout PROBE = struct(
            "io_uring_probe",
            JAVA_BYTE.withName("last_op"),
            JAVA_BYTE.withName("ops_len"),
            MemoryLayout.paddingLayout(14));

    /** All of them, for the comparison with C's. */
    public static final List<StructLayout> STRUCTS = List.of(
            SQE, CQE, SQ_OFFSETS, CQ_OFFSETS, PARAMS, WAIT, TIMESPEC, BUFFER, BUFFER_RING, PROBE_OPERATION, PROBE);

    public static final int IORING_SETUP_CQSIZE = 1 << 3;
    public static final int IORING_SETUP_CLAMP = 1 << 4;
    public static final int IORING_SETUP_R_DISABLED = 1 << 6;
    public static final int IORING_SETUP_SUBMIT_ALL = 1 << 7;
    public static final int IORING_SETUP_COOP_TASKRUN = 1 << 8;
    public static final int IORING_SETUP_TASKRUN_FLAG = 1 << 9;
    public static final int IORING_SETUP_SINGLE_ISSUER = 1 << 12;
    public static final int IORING_SETUP_DEFER_TASKRUN = 1 << 13;
    public static final int IORING_FEAT_SINGLE_MMAP = 1;
    public static final int IORING_FEAT_NODROP = 1 << 1;
    public static final int IORING_FEAT_EXT_ARG = 1 << 8;
    public static final int IORING_ENTER_GETEVENTS = 1;
    public static final int IORING_ENTER_EXT_ARG = 1 << 3;
    public static final int IORING_SQ_CQ_OVERFLOW = 1 << 1;
    public static final int IORING_SQ_TASKRUN = 1 << 2;
    public static final int IORING_OP_POLL_ADD = 6;
    public static final int IORING_OP_ASYNC_CANCEL = 14;
    public static final int IORING_OP_READ = 22;
    public static final int IORING_OP_SEND = 26;
    public static final int IORING_OP_RECV = 27;
    public static final int IORING_REGISTER_PROBE = 8;
    public static final int IORING_REGISTER_ENABLE_RINGS = 12;
    public static final int IORING_REGISTER_PBUF_RING = 22;
    public static final int IO_URING_OP_SUPPORTED = 1;
    public static final int IOSQE_BUFFER_SELECT = 1 << 5;
    public static final int IORING_RECV_MULTISHOT = 1 << 1;
    public static final int IORING_ASYNC_CANCEL_ALL = 1;
    public static final int IORING_ASYNC_CANCEL_ANY = 1 << 2;
    public static final int IORING_CQE_F_BUFFER = 1;
    public static final int IORING_CQE_F_MORE = 1 << 1;
    public static final int IORING_CQE_BUFFER_SHIFT = 16;
    public static final long IORING_OFF_SQES = 0x10000000L;
    public static final int POLLIN = 0x1;
    public static final int POLLOUT = 0x4;
    public static final int MSG_NOSIGNAL = 0x4000;
    public static final int MSG_WAITALL = 0x100;
    public static final int IPPROTO_TCP = 6;
    public static final int TCP_KEEPIDLE = 4;
    public static final int TCP_KEEPINTVL = 5;

    /** Linked when they are needed, as those of {@link MappedMemory}. */
    private static final class Calls {
        private static final FunctionDescriptor OF_SYSCALL = FunctionDescriptor.of(
                JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG);

        /** {@code long syscall(long number, ...);} */
        private static final MethodHandle SYSCALL = find("syscall", OF_SYSCALL, Linker.Option.firstVariadicArg(1));

        /** As {@link #SYSCALL}, without the errno. */
        private static final MethodHandle ENTER = Linker.nativeLinker()
                .downcallHandle(
                        Linker.nativeLinker().defaultLookup().findOrThrow("syscall"),
                        OF_SYSCALL,
                        Linker.Option.firstVariadicArg(1));

        /** {@code int eventfd(unsigned int initval, int flags);} */
        private static final MethodHandle EVENTFD =
                find("eventfd", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT));

        /** {@code ssize_t write(int fd, const void buf[count], size_t count);} */
        private static final MethodHandle WRITE =
                find("write", FunctionDescriptor.of(JAVA_LONG, JAVA_INT, JAVA_LONG, JAVA_LONG));

        /** {@code int close(int fd);} */
        private static final MethodHandle CLOSE = find("close", FunctionDescriptor.of(JAVA_INT, JAVA_INT));

        /** {@code int poll(struct pollfd *fds, nfds_t nfds, int timeout);} */
        private static final MethodHandle POLL =
                find("poll", FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_INT));

        /** {@code int getsockopt(int fd, int level, int name, void *value, socklen_t *length);} */
        private static final MethodHandle GETSOCKOPT =
                find("getsockopt", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT, JAVA_LONG, JAVA_LONG));

        private static MethodHandle find(String name, FunctionDescriptor descriptor, Linker.Option... more) {
            Linker linker = Linker.nativeLinker();
            Linker.Option[] options = java.util.Arrays.copyOf(more, more.length + 1);
            options[more.length] = Errno.CAPTURE;
            return linker.downcallHandle(linker.defaultLookup().findOrThrow(name), descriptor, options);
        }
    }

    private IoUring() {}

    private static StructLayout struct(String name, MemoryLayout... members) {
        return MemoryLayout.structLayout(members).withName(name);
    }

    /**
     * Where a member is.
     *
     * @param layout one of {@link #STRUCTS}
     * @param path C's names
     * @return bytes from its start
     */
    public static long offset(StructLayout layout, String... path) {
        MemoryLayout.PathElement[] elements = new MemoryLayout.PathElement[path.length];
        for (int i = 0; i < path.length; i++) {
            elements[i] = MemoryLayout.PathElement.groupElement(path[i]);
        }
        return layout.byteOffset(elements);
    }

    /**
     * Why nothing of this can be called here.
     *
     * @return null if it can; whether the kernel then allows it is another question
     */
    public static @Nullable String unavailabilityCause() {
        if (!MappedMemory.isAvailable()) {
            return "this is not Linux, or the JVM denies native access";
        }
        // On big-endian machines the halves of a poll's events are swapped.
        return ByteOrder.nativeOrder() == ByteOrder.LITTLE_ENDIAN ? null : "the processor is big-endian";
    }

    /** {@code int io_uring_setup(u32 entries, struct io_uring_params *p);} */
    public static int setup(MemorySegment errno, int entries, MemorySegment params) {
        return syscall(errno, SETUP, entries, params.address(), 0, 0, 0, 0);
    }

    /**
     * {@code int io_uring_enter(unsigned int fd, unsigned int to_submit, unsigned int min_complete, unsigned int flags,
     * const void *arg, size_t size);} Returns -1 for any error, and makes no garbage.
     */
    public static int enter(int fd, int toSubmit, int minComplete, int flags, long arg, long argBytes) {
        try {
            return (int) (long) Calls.ENTER.invokeExact(
                    ENTER, (long) fd, (long) toSubmit, (long) minComplete, (long) flags, arg, argBytes);
        } catch (Throwable impossible) {
            throw unexpected(impossible);
        }
    }

    /** As {@link #enter}, without a wait, and with the errno. */
    public static int enterErrno(MemorySegment errno, int fd, int toSubmit, int flags) {
        return syscall(errno, ENTER, fd, toSubmit, 0, flags, 0, 0);
    }

    /** {@code int io_uring_register(unsigned int fd, unsigned int opcode, void *arg, unsigned int nr_args);} */
    public static int register(MemorySegment errno, int fd, int opcode, MemorySegment arg, int count) {
        return syscall(errno, REGISTER, fd, opcode, arg.address(), count, 0, 0);
    }

    private static int syscall(MemorySegment errno, long number, long a, long b, long c, long d, long e, long f) {
        try {
            long result = (long) Calls.SYSCALL.invokeExact(errno, number, a, b, c, d, e, f);
            return result < 0 ? -Errno.get(errno) : (int) result;
        } catch (Throwable impossible) {
            throw unexpected(impossible);
        }
    }

    /** A descriptor that is readable once something was written; reading waits. */
    public static int eventfd(MemorySegment errno) {
        try {
            int closeOnExec = 0x80000;
            int made = (int) Calls.EVENTFD.invokeExact(errno, 0, closeOnExec);
            return made < 0 ? -Errno.get(errno) : made;
        } catch (Throwable impossible) {
            throw unexpected(impossible);
        }
    }

    /** Adds 1 to an eventfd. */
    public static void signal(int eventfd) {
        try (Arena call = Arena.ofConfined()) {
            MemorySegment one = call.allocateFrom(JAVA_LONG, 1);
            long ignored = (long) Calls.WRITE.invokeExact(Errno.newCapture(call), eventfd, one.address(), 8L);
        } catch (Throwable impossible) {
            throw unexpected(impossible);
        }
    }

    /** Closes a descriptor, which Linux does whatever it returns. */
    public static void close(int fd) {
        try (Arena call = Arena.ofConfined()) {
            int ignored = (int) Calls.CLOSE.invokeExact(Errno.newCapture(call), fd);
        } catch (Throwable impossible) {
            throw unexpected(impossible);
        }
    }

    /** Whether a descriptor can be read now; false also if it is none. */
    public static boolean isReadable(int fd) {
        try (Arena call = Arena.ofConfined()) {
            MemorySegment poll = call.allocate(8, 4); // struct pollfd: int fd, short events, short revents
            poll.set(JAVA_INT, 0, fd);
            poll.set(JAVA_SHORT, 4, (short) POLLIN);
            int ready = (int) Calls.POLL.invokeExact(Errno.newCapture(call), poll.address(), 1L, 0);
            return ready == 1 && (poll.get(JAVA_SHORT, 6) & POLLIN) != 0;
        } catch (Throwable impossible) {
            throw unexpected(impossible);
        }
    }

    /**
     * An option of TCP.
     *
     * @param errno receives errno
     * @param fd any number
     * @param name of the option
     * @param scratch 8 bytes
     * @return its value, or a negative errno: it is no TCP socket
     */
    public static int tcpOption(MemorySegment errno, int fd, int name, MemorySegment scratch) {
        scratch.set(JAVA_INT, 4, Integer.BYTES);
        try {
            int refused = (int) Calls.GETSOCKOPT.invokeExact(
                    errno, fd, IPPROTO_TCP, name, scratch.address(), scratch.address() + 4);
            return refused < 0 ? -Errno.get(errno) : scratch.get(ValueLayout.JAVA_INT, 0);
        } catch (Throwable impossible) {
            throw unexpected(impossible);
        }
    }

    private static RuntimeException unexpected(Throwable impossible) {
        if (impossible instanceof Error error) {
            throw error;
        }
        return impossible instanceof RuntimeException known
                ? known
                : new IllegalStateException("a system call could not be made", impossible);
    }
}
