package org.verbena.cm;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.cm.ffm.RdmaCm;
import org.verbena.cm.ffm.RdmaCmEvent;
import org.verbena.cm.ffm.RdmaCmId;
import org.verbena.cm.ffm.RdmaEventChannel;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.Errno;
import org.verbena.verbs.ffm.FileDescriptors;
import org.verbena.verbs.ffm.Pointers;

/**
 * Receives the events of ids.
 *
 * <p>An event is copied whole and acknowledged before it is handed out. So no event is ever outstanding, and closing an
 * id, which librdmacm makes wait for the id's unacknowledged events, never hangs. An event's id is found by a number
 * that is never reused, not by its address, which librdmacm does reuse.
 *
 * <p>The descriptor is non-blocking: wait for it to be readable, in an event loop of your own or with {@link #get},
 * then take events with {@link #tryGet} until there is none.
 *
 * <p>All methods may be called on any thread. A lock of the channel keeps librdmacm's work on an event (it moves the
 * queue pair to its next state while handing out the event) apart from the destruction of that queue pair or id on
 * another thread; it is held for one system call at a time and never while waiting.
 *
 * <p>Source: rdma_create_event_channel(3), rdma_get_cm_event(3)
 */
public final class EventChannel implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(EventChannel.class);

    /** Keeps two channels' locks in one order when an id migrates. */
    private static final AtomicLong SEQUENCE = new AtomicLong();

    /** The numbers that ids are found by; process-wide, since ids migrate between channels. */
    private static final AtomicLong TOKENS = new AtomicLong();

    final ReentrantLock lock = new ReentrantLock();
    final long sequence = SEQUENCE.incrementAndGet();

    /**
     * Open ids by their numbers. Written under the lock, except for an id that migrates here: it is added before its
     * events arrive.
     */
    private final Map<Long, CmId> ids = new ConcurrentHashMap<>();

    private final int descriptor;

    /** 0 once closed; written under the lock. */
    private volatile long pointer;

    private EventChannel(long pointer) {
        this.pointer = pointer;
        this.descriptor = Pointers.readInt(pointer + RdmaEventChannel.FD);
    }

    /**
     * Opens a channel.
     *
     * @return to be closed after all ids on it
     * @throws CmException ENODEV without any RDMA device; ENOENT, EACCES or EPERM if /dev/infiniband/rdma_cm cannot be
     *     used
     * @throws UnsupportedOperationException if librdmacm is missing; see {@link Cm#unavailabilityCause}
     */
    public static EventChannel open() {
        try (Arena call = Arena.ofConfined()) {
            MemorySegment errno = Errno.newCapture(call);
            long pointer = RdmaCm.createEventChannel(errno);
            if (pointer == 0) {
                throw new CmException("rdma_create_event_channel()", Errno.get(errno));
            }
            EventChannel channel = new EventChannel(pointer);
            int result = FileDescriptors.setBlocking(errno, channel.descriptor, false);
            if (result < 0) {
                channel.close();
                throw new CmException("fcntl(O_NONBLOCK)", -result);
            }
            return channel;
        }
    }

    /**
     * The descriptor that becomes readable when an event is pending.
     *
     * @return a file descriptor, valid until the channel is closed
     */
    public int descriptor() {
        return descriptor;
    }

    /**
     * Takes the next event, if one is pending.
     *
     * @return null if none is pending
     * @throws IllegalStateException if the channel is closed
     */
    public @Nullable CmEvent tryGet() {
        lock.lock();
        // Not memory of the channel: closing a shared arena stops all threads, and each connection may have a channel.
        try (Arena call = Arena.ofConfined()) {
            MemorySegment errno = Errno.newCapture(call);
            MemorySegment eventPointer = call.allocate(ValueLayout.JAVA_LONG);
            while (true) {
                long channel = requireOpen();
                if (RdmaCm.getCmEvent(errno, channel, eventPointer.address()) != 0) {
                    int code = Errno.get(errno);
                    if (code == Errno.EAGAIN) {
                        return null;
                    }
                    if (code == Errno.EINTR) {
                        continue;
                    }
                    throw new CmException("rdma_get_cm_event()", code);
                }
                CmEvent event = copyAndAcknowledge(errno, eventPointer.get(ValueLayout.JAVA_LONG, 0));
                if (event != null) {
                    return event;
                }
            }
        } finally {
            lock.unlock();
        }
    }

    /**
     * Waits for the next event.
     *
     * @param timeoutMillis how long to wait; negative waits forever
     * @return null if none came in time
     * @throws IllegalStateException if the channel is closed
     */
    public @Nullable CmEvent get(long timeoutMillis) {
        long deadlineNanos = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeoutMillis);
        while (true) {
            CmEvent event = tryGet();
            if (event != null) {
                return event;
            }
            // In slices, so that closing the channel on another thread ends the wait.
            long leftMillis = MAX_POLL_MILLIS;
            if (timeoutMillis >= 0) {
                leftMillis = Math.min(
                        leftMillis, TimeUnit.NANOSECONDS.toMillis(deadlineNanos - System.nanoTime() + 999_999));
                if (leftMillis <= 0) {
                    return null;
                }
            }
            Descriptors.awaitReadable((int) leftMillis, descriptor);
        }
    }

    /** How long {@link #get} waits before it checks whether the channel was closed. */
    private static final long MAX_POLL_MILLIS = 1000;

    /** Null if its id was closed, which the kernel rules out; even then it is acknowledged. */
    private @Nullable CmEvent copyAndAcknowledge(MemorySegment errno, long event) {
        try {
            MemorySegment struct = Pointers.view(event, RdmaCmEvent.SIZE);
            long nativeId = struct.get(CStruct.PTR, RdmaCmEvent.ID);
            CmEventType type = CmEventType.of(struct.get(CStruct.ENUM, RdmaCmEvent.EVENT));
            CmId listener = null;
            CmId id = ids.get(Pointers.readLong(nativeId + RdmaCmId.CONTEXT));
            if (type == CmEventType.CONNECT_REQUEST) {
                // librdmacm made a new id, with the listening id's context.
                listener = id;
                id = CmId.adopt(this, nativeId);
            }
            if (id == null) {
                LOG.warn("Dropped the event {} of an id that is not open on this channel", type);
                return null;
            }
            return CmEvent.copy(type, struct, id, listener);
        } finally {
            RdmaCm.ackCmEvent(errno, event);
        }
    }

    static long newToken() {
        return TOKENS.incrementAndGet();
    }

    void register(long token, CmId id) {
        ids.put(token, id);
    }

    void unregister(long token) {
        ids.remove(token);
    }

    /** The address of the C struct; for calls under the lock. */
    long requireOpen() {
        long open = pointer;
        if (open == 0) {
            throw new IllegalStateException("the event channel is closed");
        }
        return open;
    }

    /**
     * Whether it was closed.
     *
     * @return false while it is open
     */
    public boolean isClosed() {
        return pointer == 0;
    }

    /**
     * Closes the channel and its descriptor. Idempotent.
     *
     * @throws IllegalStateException while ids are open on it; the message names them
     */
    @Override
    public void close() {
        lock.lock();
        try (Arena call = Arena.ofConfined()) {
            long open = pointer;
            if (open == 0) {
                return;
            }
            if (!ids.isEmpty()) {
                List<CmId> live = new ArrayList<>(ids.values());
                throw new IllegalStateException("the event channel still has " + live.size() + " open ids: "
                        + live.stream().limit(5).map(CmId::toString).collect(Collectors.joining(", "))
                        + (live.size() > 5 ? " ..." : "") + "; close them first");
            }
            pointer = 0;
            RdmaCm.destroyEventChannel(Errno.newCapture(call), open);
        } finally {
            lock.unlock();
        }
    }

    @Override
    public String toString() {
        return "EventChannel[descriptor=" + descriptor + (isClosed() ? ", closed]" : "]");
    }
}
