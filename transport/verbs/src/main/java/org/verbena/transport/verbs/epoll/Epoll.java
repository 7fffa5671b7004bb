package org.verbena.transport.verbs.epoll;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.verbs.ffm.Libc;
import org.verbena.transport.verbs.ffm.LibcLibrary;
import org.verbena.verbs.ffm.Errno;

/**
 * An epoll instance. Belongs to one thread, which makes it, uses it and closes it. Waiting allocates nothing; a signal
 * that interrupts a wait is not seen outside.
 *
 * <p>Source: epoll(7), epoll_ctl(2), epoll_wait(2)
 */
public final class Epoll implements AutoCloseable {
    /** There is something to read. */
    public static final int READABLE = 0x001;

    /** An error; reported whether asked for or not. */
    public static final int ERROR = 0x008;

    /** Report a state once when it comes, not as long as it lasts. */
    public static final int EDGE_TRIGGERED = 1 << 31;

    private static final int CLOSE_ON_EXEC = 0x80000;
    private static final int ADD = 1;
    private static final int REMOVE = 2;

    /**
     * {@code struct epoll_event} is packed on x86-64 only, where it has the layout of 32 bits. Source: sys/epoll.h.
     */
    private static final boolean PACKED = "amd64".equals(System.getProperty("os.arch"));

    private static final long EVENT_BYTES = PACKED ? 12 : 16;
    private static final long DATA_OFFSET = PACKED ? 4 : 8;
    private static final long NANOS_PER_SECOND = 1_000_000_000L;
    private static final long NANOS_PER_MILLI = 1_000_000L;

    /** Longest wait in one go: a day, far within what both calls take. */
    private static final long MAX_TIMEOUT_NANOS = 86_400 * NANOS_PER_SECOND;

    private final Arena arena = Arena.ofShared();
    private final MemorySegment capture = Errno.newCapture(arena);
    private final MemorySegment control = arena.allocate(EVENT_BYTES, 8);
    private final MemorySegment timeout = arena.allocate(16, 8);
    private final MemorySegment events;
    private final int maxEvents;
    private final int fd;
    private boolean hasPwait2 = LibcLibrary.HAS_EPOLL_PWAIT2;
    private boolean closed;

    /**
     * Creates one.
     *
     * @param maxEvents the most that one wait reports, 1 or more
     * @throws java.io.UncheckedIOException no descriptor is left (EMFILE)
     */
    public Epoll(int maxEvents) {
        this.maxEvents = maxEvents;
        events = arena.allocate(maxEvents * EVENT_BYTES, 8);
        int result = Libc.epollCreate1(capture, CLOSE_ON_EXEC);
        if (result < 0) {
            arena.close();
            throw LibcLibrary.failure("epoll_create1(EPOLL_CLOEXEC)", -result);
        }
        fd = result;
    }

    /**
     * Why there is no epoll here.
     *
     * @return null where there is
     */
    public static @Nullable Throwable unavailabilityCause() {
        return LibcLibrary.LIBRARY.unavailabilityCause();
    }

    /**
     * Watches a descriptor.
     *
     * @param descriptor what to watch
     * @param interest a mask of {@link #READABLE} and {@link #EDGE_TRIGGERED}
     * @param data comes back with its events
     */
    public void add(int descriptor, int interest, long data) {
        control.set(ValueLayout.JAVA_INT, 0, interest);
        control.set(ValueLayout.JAVA_LONG_UNALIGNED, DATA_OFFSET, data);
        int result = Libc.epollCtl(capture, fd, ADD, descriptor, control.address());
        if (result < 0) {
            throw LibcLibrary.failure("epoll_ctl(EPOLL_CTL_ADD, descriptor " + descriptor + ")", -result);
        }
    }

    /**
     * Watches a descriptor no longer. To be called before the descriptor is closed.
     *
     * @param descriptor what is watched
     */
    public void remove(int descriptor) {
        int result = Libc.epollCtl(capture, fd, REMOVE, descriptor, control.address());
        if (result < 0) {
            throw LibcLibrary.failure("epoll_ctl(EPOLL_CTL_DEL, descriptor " + descriptor + ")", -result);
        }
    }

    /**
     * Waits for events.
     *
     * @param timeoutNanos 0 only checks, a negative value waits for ever
     * @return how many there are, to be asked for with {@link #data} and {@link #events}; 0 after the timeout or a
     *     signal
     */
    public int await(long timeoutNanos) {
        int count = await0(timeoutNanos);
        if (count == -Errno.EINTR) {
            return 0;
        }
        if (count < 0) {
            throw LibcLibrary.failure("epoll_wait(descriptor " + fd + ")", -count);
        }
        return count;
    }

    private int await0(long timeoutNanos) {
        if (timeoutNanos <= 0) {
            return awaitMillis(timeoutNanos == 0 ? 0 : -1);
        }
        long bounded = Math.min(timeoutNanos, MAX_TIMEOUT_NANOS);
        if (hasPwait2) {
            timeout.set(ValueLayout.JAVA_LONG, 0, bounded / NANOS_PER_SECOND);
            timeout.set(ValueLayout.JAVA_LONG, 8, bounded % NANOS_PER_SECOND);
            int count = Libc.epollPwait2(fd, events.address(), maxEvents, timeout.address(), 0);
            if (count >= 0) {
                return count;
            }
            timeout.fill((byte) 0);
            count = Libc.epollPwait2Errno(capture, fd, events.address(), maxEvents, timeout.address(), 0);
            if (count != -Errno.ENOSYS) {
                return count;
            }
            hasPwait2 = false;
        }
        // Rounded up: a loop that wakes before its deadline would spin through the rest of the millisecond.
        return awaitMillis((int) ((bounded + NANOS_PER_MILLI - 1) / NANOS_PER_MILLI));
    }

    /** Waits without the errno. When that fails, it only looks, with the errno: after a signal that shows no error. */
    private int awaitMillis(int timeoutMillis) {
        int count = Libc.epollWait(fd, events.address(), maxEvents, timeoutMillis);
        return count >= 0 ? count : Libc.epollWaitErrno(capture, fd, events.address(), maxEvents, 0);
    }

    /** Behaves as on a kernel without epoll_pwait2. */
    void forgetPwait2() {
        hasPwait2 = false;
    }

    /**
     * What happened.
     *
     * @param index 0 to the count of the last wait - 1
     * @return a mask of {@link #READABLE}, {@link #ERROR} and others of epoll_ctl(2)
     */
    public int events(int index) {
        return events.get(ValueLayout.JAVA_INT_UNALIGNED, index * EVENT_BYTES);
    }

    /**
     * The tag of a reported event.
     *
     * @param index 0 to the count of the last wait - 1
     * @return what was given to {@link #add}
     */
    public long data(int index) {
        return events.get(ValueLayout.JAVA_LONG_UNALIGNED, index * EVENT_BYTES + DATA_OFFSET);
    }

    /** Idempotent. */
    @Override
    public void close() {
        if (!closed) {
            closed = true;
            Libc.close(fd);
            arena.close();
        }
    }
}
