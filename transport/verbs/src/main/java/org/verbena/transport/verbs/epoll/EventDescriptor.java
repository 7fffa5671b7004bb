package org.verbena.transport.verbs.epoll;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.verbena.transport.verbs.ffm.Libc;
import org.verbena.transport.verbs.ffm.LibcLibrary;
import org.verbena.verbs.ffm.Errno;

/**
 * A descriptor that any thread can make readable, to wake a thread that waits on an {@link Epoll}.
 *
 * <p>Source: eventfd(2)
 */
public final class EventDescriptor implements AutoCloseable {
    private static final int CLOSE_ON_EXEC = 0x80000;
    private static final int NON_BLOCKING = 0x800;
    private static final MemorySegment ONE = one();

    private final Arena arena = Arena.ofShared();
    private final MemorySegment counter = arena.allocate(ValueLayout.JAVA_LONG);
    private final int fd;
    private boolean closed;

    /**
     * Makes one that is not signalled.
     *
     * @throws java.io.UncheckedIOException no descriptor is left (EMFILE)
     */
    public EventDescriptor() {
        try (Arena call = Arena.ofConfined()) {
            fd = Libc.eventfd(Errno.newCapture(call), 0, CLOSE_ON_EXEC | NON_BLOCKING);
        }
        if (fd < 0) {
            arena.close();
            throw LibcLibrary.failure("eventfd(EFD_CLOEXEC | EFD_NONBLOCK)", -fd);
        }
    }

    private static MemorySegment one() {
        MemorySegment segment = Arena.global().allocate(ValueLayout.JAVA_LONG);
        segment.set(ValueLayout.JAVA_LONG, 0, 1);
        return segment.asReadOnly();
    }

    /**
     * What to watch.
     *
     * @return the descriptor
     */
    public int fd() {
        return fd;
    }

    /** Makes it readable. Any thread. Does nothing once it is closed. */
    public synchronized void signal() {
        // Under the monitor: between close(2) and here the number could have become somebody else's descriptor.
        if (!closed) {
            Libc.write(fd, ONE.address(), Long.BYTES);
        }
    }

    /**
     * Makes it unreadable. The waiting thread.
     *
     * @return whether it was signalled
     */
    public boolean drain() {
        return Libc.read(fd, counter.address(), Long.BYTES) == Long.BYTES;
    }

    /** Idempotent. */
    @Override
    public synchronized void close() {
        if (!closed) {
            closed = true;
            Libc.close(fd);
            arena.close();
        }
    }
}
