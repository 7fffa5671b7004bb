package org.verbena.transport.soft.uring;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.List;
import org.verbena.transport.ffm.Errno;
import org.verbena.transport.ffm.ErrnoException;
import org.verbena.transport.ffm.IoUring;
import org.verbena.transport.ffm.MappedMemory;

/**
 * io_uring of Linux, by its system calls. The kernel and this thread share both queues: who adds writes the tail with
 * release, who takes reads it with acquire, and the other way round for the head. Source: io_uring(7)
 */
final class KernelRing implements Ring {
    private static final int SUBMISSIONS = 512;

    /** Of 16 bytes each; what does not fit, the kernel keeps. */
    private static final int COMPLETIONS = 4096;

    /** Noted operations that are given to the kernel even if the loop does not come to it. */
    private static final int MOST_NOTED = 64;

    private static final int GROUP = 0;
    private static final long SQE_BYTES = IoUring.SQE.byteSize();
    private static final long NANOS_PER_SECOND = 1_000_000_000L;

    /** Longest wait in one go: a day. */
    private static final long MAX_WAIT_NANOS = 86_400 * NANOS_PER_SECOND;

    private static final int ALWAYS = IoUring.IORING_SETUP_CQSIZE
            | IoUring.IORING_SETUP_CLAMP
            | IoUring.IORING_SETUP_SUBMIT_ALL
            | IoUring.IORING_SETUP_R_DISABLED;

    /** The best first; what a kernel does not know, it refuses with EINVAL. */
    private static final List<Integer> MODES = List.of(
            IoUring.IORING_SETUP_SINGLE_ISSUER | IoUring.IORING_SETUP_DEFER_TASKRUN | IoUring.IORING_SETUP_TASKRUN_FLAG,
            IoUring.IORING_SETUP_COOP_TASKRUN | IoUring.IORING_SETUP_TASKRUN_FLAG);

    private static final int NEEDED =
            IoUring.IORING_FEAT_SINGLE_MMAP | IoUring.IORING_FEAT_NODROP | IoUring.IORING_FEAT_EXT_ARG;

    private static final int[] OPERATIONS = {
        IoUring.IORING_OP_POLL_ADD,
        IoUring.IORING_OP_ASYNC_CANCEL,
        IoUring.IORING_OP_READ,
        IoUring.IORING_OP_SEND,
        IoUring.IORING_OP_RECV
    };

    private static final ValueLayout.OfByte U8 = ValueLayout.JAVA_BYTE;
    private static final ValueLayout.OfShort U16 = ValueLayout.JAVA_SHORT;
    private static final ValueLayout.OfInt U32 = ValueLayout.JAVA_INT;
    private static final ValueLayout.OfLong U64 = ValueLayout.JAVA_LONG;
    private static final VarHandle SHARED = U32.varHandle();
    private static final VarHandle SHARED_SHORT = U16.varHandle();
    private static final VarHandle ENTERS;

    static {
        try {
            ENTERS = MethodHandles.lookup().findVarHandle(KernelRing.class, "enters", long.class);
        } catch (ReflectiveOperationException impossible) {
            throw new ExceptionInInitializerError(impossible);
        }
    }

    private static final long OPCODE = sqe("opcode");
    private static final long FLAGS = sqe("flags");
    private static final long IOPRIO = sqe("ioprio");
    private static final long FD = sqe("fd");
    private static final long OFF = sqe("off");
    private static final long ADDR = sqe("addr");
    private static final long LEN = sqe("len");
    private static final long OP_FLAGS = sqe("msg_flags");
    private static final long USER_DATA = sqe("user_data");
    private static final long BUF_GROUP = sqe("buf_group");
    private static final long RESULT = IoUring.offset(IoUring.CQE, "res");
    private static final long RESULT_FLAGS = IoUring.offset(IoUring.CQE, "flags");
    private static final long CQE_BYTES = IoUring.CQE.byteSize();
    private static final long BUFFER_LEN = IoUring.offset(IoUring.BUFFER, "len");
    private static final long BUFFER_ID = IoUring.offset(IoUring.BUFFER, "bid");
    private static final long BUFFER_TAIL = IoUring.offset(IoUring.BUFFER, "resv");

    private final Arena arena = Arena.ofShared();
    private final MemorySegment errno = Errno.newCapture(arena);
    private final MemorySegment wait = arena.allocate(IoUring.WAIT);
    private final MemorySegment timeout = arena.allocate(IoUring.TIMESPEC);
    private final int fd;
    private final int mode;
    private final MemorySegment rings;
    private final MemorySegment entries;
    private final MemorySegment bufferRing;
    private final MemorySegment buffers;
    private final long sqHead;
    private final long sqTail;
    private final long sqFlags;
    private final long cqHead;
    private final long cqTail;
    private final long cqes;
    private final int sqEntries;
    private final int cqMask;

    /** The next to be noted, and the next to be given to the kernel. */
    private int tail;

    private int submitted;
    private int head;
    private int bufferTail;
    private long enters;
    private Completions completions = (id, result, flags) -> {};

    /**
     * Makes one that is not started.
     *
     * @throws IOException the kernel refuses it, or cannot do what is needed; an {@link ErrnoException} of a call that
     *     failed
     */
    KernelRing() throws IOException {
        MemorySegment params = arena.allocate(IoUring.PARAMS);
        int made = -Errno.EINVAL;
        int with = 0;
        for (int next : MODES) {
            if (made == -Errno.EINVAL) {
                with = next;
                params.fill((byte) 0);
                params.set(U32, param("cq_entries"), COMPLETIONS);
                params.set(U32, param("flags"), ALWAYS | next);
                made = IoUring.setup(errno, SUBMISSIONS, params);
            }
        }
        if (made < 0) {
            arena.close();
            throw new ErrnoException("io_uring_setup(2)", -made);
        }
        fd = made;
        mode = with;
        MemorySegment ringsMade = MemorySegment.NULL;
        MemorySegment entriesMade = MemorySegment.NULL;
        MemorySegment bufferRingMade = MemorySegment.NULL;
        MemorySegment buffersMade = MemorySegment.NULL;
        try {
            checkFeatures(params.get(U32, param("features")));
            sqEntries = params.get(U32, param("sq_entries"));
            int cqEntries = params.get(U32, param("cq_entries"));
            long array = params.get(U32, param("sq_off", "array"));
            cqes = params.get(U32, param("cq_off", "cqes"));
            long bytes = Math.max(array + sqEntries * 4L, cqes + cqEntries * CQE_BYTES);
            ringsMade = MappedMemory.mapAt(fd, 0, bytes);
            entriesMade = MappedMemory.mapAt(fd, IoUring.IORING_OFF_SQES, sqEntries * SQE_BYTES);
            sqHead = params.get(U32, param("sq_off", "head"));
            sqTail = params.get(U32, param("sq_off", "tail"));
            sqFlags = params.get(U32, param("sq_off", "flags"));
            cqHead = params.get(U32, param("cq_off", "head"));
            cqTail = params.get(U32, param("cq_off", "tail"));
            cqMask = cqEntries - 1;
            for (int i = 0; i < sqEntries; i++) {
                ringsMade.set(U32, array + i * 4L, i);
            }
            bufferRingMade = MappedMemory.map(BUFFERS * IoUring.BUFFER.byteSize());
            buffersMade = MappedMemory.map((long) BUFFERS * BUFFER_STRIDE);
            registerBuffers(bufferRingMade);
        } catch (IOException | RuntimeException refused) {
            IoUring.close(fd);
            unmap(ringsMade, entriesMade, bufferRingMade, buffersMade);
            arena.close();
            throw refused;
        }
        rings = ringsMade;
        entries = entriesMade;
        bufferRing = bufferRingMade;
        buffers = buffersMade;
        for (int i = 0; i < BUFFERS; i++) {
            provide(i);
        }
        wait.set(U64, IoUring.offset(IoUring.WAIT, "ts"), timeout.address());
    }

    private static long sqe(String member) {
        return IoUring.offset(IoUring.SQE, member);
    }

    private static long param(String... path) {
        return IoUring.offset(IoUring.PARAMS, path);
    }

    private static void unmap(MemorySegment... mappings) {
        for (MemorySegment mapping : mappings) {
            if (mapping.byteSize() > 0) {
                MappedMemory.unmap(mapping);
            }
        }
    }

    /** Asks what the kernel can do, since distributions' version numbers do not say it. */
    private void checkFeatures(int features) throws IOException {
        if ((features & NEEDED) != NEEDED) {
            throw new IOException(
                    "the kernel's io_uring is too old (features 0x" + Integer.toHexString(features) + ")");
        }
        int most = 256;
        long operationBytes = IoUring.PROBE_OPERATION.byteSize();
        MemorySegment probe = arena.allocate(IoUring.PROBE.byteSize() + most * operationBytes, 8);
        check("IORING_REGISTER_PROBE", IoUring.register(errno, fd, IoUring.IORING_REGISTER_PROBE, probe, most));
        int last = probe.get(U8, IoUring.offset(IoUring.PROBE, "last_op")) & 0xff;
        for (int operation : OPERATIONS) {
            long at = IoUring.PROBE.byteSize()
                    + operation * operationBytes
                    + IoUring.offset(IoUring.PROBE_OPERATION, "flags");
            if (operation > last || (probe.get(U16, at) & IoUring.IO_URING_OP_SUPPORTED) == 0) {
                throw new IOException("the kernel's io_uring has no operation " + operation);
            }
        }
    }

    private void registerBuffers(MemorySegment ring) throws IOException {
        MemorySegment registration = arena.allocate(IoUring.BUFFER_RING);
        registration.set(U64, IoUring.offset(IoUring.BUFFER_RING, "ring_addr"), ring.address());
        registration.set(U32, IoUring.offset(IoUring.BUFFER_RING, "ring_entries"), BUFFERS);
        registration.set(U16, IoUring.offset(IoUring.BUFFER_RING, "bgid"), (short) GROUP);
        check(
                "IORING_REGISTER_PBUF_RING",
                IoUring.register(errno, fd, IoUring.IORING_REGISTER_PBUF_RING, registration, 1));
    }

    private static void check(String operation, int result) throws ErrnoException {
        if (result < 0) {
            throw new ErrnoException("io_uring_register(2) with " + operation, -result);
        }
    }

    /** Whether the kernel does its part only within this thread's calls. */
    boolean isDeferred() {
        return (mode & IoUring.IORING_SETUP_DEFER_TASKRUN) != 0;
    }

    @Override
    public void start(Completions to) {
        completions = to;
        try {
            check(
                    "IORING_REGISTER_ENABLE_RINGS",
                    IoUring.register(errno, fd, IoUring.IORING_REGISTER_ENABLE_RINGS, MemorySegment.NULL, 0));
        } catch (ErrnoException refused) {
            throw new UncheckedIOException(refused);
        }
    }

    @Override
    public MemorySegment buffers() {
        return buffers;
    }

    @Override
    public void provide(int buffer) {
        long at = (bufferTail & (BUFFERS - 1)) * IoUring.BUFFER.byteSize();
        bufferRing.set(U64, at, buffers.address() + (long) buffer * BUFFER_STRIDE + HEADROOM_BYTES);
        bufferRing.set(U32, at + BUFFER_LEN, BUFFER_BYTES);
        bufferRing.set(U16, at + BUFFER_ID, (short) buffer);
        bufferTail++;
        SHARED_SHORT.setRelease(bufferRing, BUFFER_TAIL, (short) bufferTail);
    }

    /** Begins an operation; returns where its entry is. */
    private long entry(int operation, int descriptor, long id) {
        if (tail - submitted >= MOST_NOTED) {
            enter(0, 0, 0);
        }
        while (tail - (int) SHARED.getAcquire(rings, sqHead) == sqEntries) {
            enter(0, IoUring.IORING_ENTER_GETEVENTS, 0);
            take(); // a kernel that has no room for completions takes no operations
        }
        long at = (tail & (sqEntries - 1)) * SQE_BYTES;
        clear(at);
        entries.set(U8, at + OPCODE, (byte) operation);
        entries.set(U32, at + FD, descriptor);
        entries.set(U64, at + USER_DATA, id);
        tail++;
        return at;
    }

    @Override
    public void receive(int descriptor, long id) {
        long at = entry(IoUring.IORING_OP_RECV, descriptor, id);
        entries.set(U8, at + FLAGS, (byte) IoUring.IOSQE_BUFFER_SELECT);
        entries.set(U16, at + IOPRIO, (short) IoUring.IORING_RECV_MULTISHOT);
        entries.set(U16, at + BUF_GROUP, (short) GROUP);
    }

    @Override
    public int send(int descriptor, long address, int bytes, long id) {
        long at = entry(IoUring.IORING_OP_SEND, descriptor, id);
        entries.set(U64, at + ADDR, address);
        entries.set(U32, at + LEN, bytes);
        entries.set(U32, at + OP_FLAGS, IoUring.MSG_NOSIGNAL | IoUring.MSG_WAITALL);
        return tail - 1;
    }

    @Override
    public boolean lengthen(int ticket, int bytes) {
        if (ticket - submitted < 0) {
            return false;
        }
        entries.set(U32, (ticket & (sqEntries - 1)) * SQE_BYTES + LEN, bytes);
        return true;
    }

    @Override
    public void poll(int descriptor, int events, long id) {
        long at = entry(IoUring.IORING_OP_POLL_ADD, descriptor, id);
        entries.set(U32, at + OP_FLAGS, events);
    }

    @Override
    public void read(int descriptor, long address, long id) {
        long at = entry(IoUring.IORING_OP_READ, descriptor, id);
        entries.set(U64, at + OFF, -1);
        entries.set(U64, at + ADDR, address);
        entries.set(U32, at + LEN, Long.BYTES);
    }

    @Override
    public void cancel(long target, long id) {
        long at = entry(IoUring.IORING_OP_ASYNC_CANCEL, -1, id);
        entries.set(U64, at + ADDR, target);
    }

    @Override
    public void cancelAll(long id) {
        long at = entry(IoUring.IORING_OP_ASYNC_CANCEL, -1, id);
        entries.set(U32, at + OP_FLAGS, IoUring.IORING_ASYNC_CANCEL_ANY | IoUring.IORING_ASYNC_CANCEL_ALL);
    }

    @Override
    public void submit() {
        if (tail != submitted) {
            enter(0, 0, 0);
        }
    }

    @Override
    public void submitLast(int descriptor) {
        submit();
        for (int next = submitted; next != tail; next++) { // the kernel has no memory at present
            long at = (next & (sqEntries - 1)) * SQE_BYTES;
            if (entries.get(U32, at + FD) == descriptor) {
                long id = entries.get(U64, at + USER_DATA);
                clear(at);
                entries.set(U64, at + USER_DATA, id);
            }
        }
    }

    /** Makes it IORING_OP_NOP, which is 0. */
    private void clear(long at) {
        for (long i = 0; i < SQE_BYTES; i += Long.BYTES) {
            entries.set(U64, at + i, 0);
        }
    }

    @Override
    public void look() {
        int waiting = (int) SHARED.getAcquire(rings, sqFlags);
        if (tail != submitted || (waiting & (IoUring.IORING_SQ_TASKRUN | IoUring.IORING_SQ_CQ_OVERFLOW)) != 0) {
            enter(0, IoUring.IORING_ENTER_GETEVENTS, 0);
        }
        take();
    }

    @Override
    public void await(long nanos) {
        enter(1, IoUring.IORING_ENTER_GETEVENTS, nanos);
        take();
    }

    private void enter(int least, int flags, long nanos) {
        SHARED.setRelease(rings, sqTail, tail);
        ENTERS.setOpaque(this, enters + 1);
        boolean isTimed = least > 0 && nanos >= 0;
        if (isTimed) {
            long bounded = Math.min(nanos, MAX_WAIT_NANOS);
            timeout.set(U64, 0, bounded / NANOS_PER_SECOND);
            timeout.set(U64, 8, bounded % NANOS_PER_SECOND);
        }
        int result = IoUring.enter(
                fd,
                tail - submitted,
                least,
                isTimed ? flags | IoUring.IORING_ENTER_EXT_ARG : flags,
                isTimed ? wait.address() : 0,
                isTimed ? IoUring.WAIT.byteSize() : 0);
        if (result < 0) {
            // Once more without a wait: capturing the errno of each call would make garbage.
            ENTERS.setOpaque(this, enters + 1);
            result = IoUring.enterErrno(errno, fd, tail - submitted, IoUring.IORING_ENTER_GETEVENTS);
        }
        if (result >= 0) {
            submitted += result;
        } else if (!isForAMoment(-result)) {
            throw new UncheckedIOException(new ErrnoException("io_uring_enter(2)", -result));
        }
    }

    /** A signal, the timeout, or memory or completions that are short: the next call goes on. */
    private static boolean isForAMoment(int error) {
        return error == Errno.EINTR || error == Errno.ETIME || error == Errno.EAGAIN || error == Errno.EBUSY;
    }

    private void take() {
        int end = (int) SHARED.getAcquire(rings, cqTail);
        if (head == end) {
            return;
        }
        while (head != end) {
            long at = cqes + (head & cqMask) * CQE_BYTES;
            completions.completed(rings.get(U64, at), rings.get(U32, at + RESULT), rings.get(U32, at + RESULT_FLAGS));
            head++;
        }
        SHARED.setRelease(rings, cqHead, head);
    }

    @Override
    public long enters() {
        return (long) ENTERS.getOpaque(this);
    }

    @Override
    public void close(boolean idle) {
        IoUring.close(fd);
        if (idle) {
            unmap(rings, entries, bufferRing, buffers);
            arena.close();
        }
    }
}
