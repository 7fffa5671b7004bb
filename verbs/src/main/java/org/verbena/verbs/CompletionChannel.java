package org.verbena.verbs;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.Errno;
import org.verbena.verbs.ffm.FileDescriptors;
import org.verbena.verbs.ffm.IbvCompChannel;
import org.verbena.verbs.ffm.LibIbverbs;
import org.verbena.verbs.ffm.Pointers;

/**
 * Receives the events of completion queues, through a descriptor for poll(2) and epoll(7), or by waiting in {@link
 * #takeEvent()}. One thread at a time takes events.
 *
 * <p>To miss no completion, keep to this order: {@link CompletionQueue#requestNotify arm}, poll until empty, and only
 * then wait; after a wait take events until there is none, arm again, poll again.
 *
 * <p>Source: ibv_create_comp_channel(3), ibv_get_cq_event(3)
 */
public final class CompletionChannel extends VerbsObject {
    private final Context context;
    private final int fd;

    /** Its queues by the number that C hands back with each event, so that an event needs no map. Guarded by itself. */
    private final List<@Nullable CompletionQueue> queues = new ArrayList<>();

    /** Which numbers are taken. Guarded by {@link #queues}. */
    private final BitSet reserved = new BitSet();

    /** What {@link #tryGetEvent} needs of native memory. Used by the one thread that takes events. */
    private final Arena arena = Arena.ofShared();

    private final MemorySegment errno = Errno.newCapture(arena);
    private final MemorySegment event = arena.allocate(2 * CStruct.PTR.byteSize(), CStruct.PTR.byteAlignment());

    private final MemorySegment pollfd;

    /** Whether taking an event waits for one. Of the one thread that takes events. */
    private boolean blocking;

    /** Whether a thread is in {@link #takeEvent}. Written by that thread, read by the one that closes. */
    private volatile boolean taking;

    private CompletionChannel(long address, Context context, int fd) {
        super(address, context);
        this.context = context;
        this.fd = fd;
        pollfd = FileDescriptors.newPollfds(arena, fd);
    }

    static CompletionChannel create(Context context) {
        return make(context, arena -> {
            long channel = Calls.create(
                    "ibv_create_comp_channel",
                    context.device().name(),
                    errno -> LibIbverbs.createCompChannel(errno, context.nativeAddress()));
            return own(
                    channel,
                    made -> new CompletionChannel(made, context, nonBlockingDescriptor(made, context)),
                    LibIbverbs::destroyCompChannel);
        });
    }

    private static int nonBlockingDescriptor(long channel, Context context) {
        AbiCheck.expect(
                "ibv_comp_channel.context",
                context.nativeAddress(),
                Pointers.readLong(channel + IbvCompChannel.CONTEXT));
        int fd = Pointers.readInt(channel + IbvCompChannel.FD);
        try (Arena arena = Arena.ofConfined()) {
            Calls.setBlocking(Errno.newCapture(arena), fd, false);
        }
        return fd;
    }

    /**
     * The context that it belongs to.
     *
     * @return the context
     */
    public Context context() {
        return context;
    }

    /**
     * The descriptor that becomes readable when there is an event.
     *
     * @return a file descriptor, which the channel closes
     */
    public int fd() {
        nativeAddress();
        return fd;
    }

    /**
     * Takes an event if there is one. The queue has to be armed again to make another. Events are acknowledged in
     * batches, the rest of them when their queue closes. Does not block.
     *
     * @return the queue that has completions, or null if there is no event
     * @throws VerbsException the device is gone
     */
    public @Nullable CompletionQueue tryGetEvent() {
        hold(); // and no lambda: this is called for each wake-up
        try {
            setBlocking(false);
            return getEvent(nativeAddress());
        } finally {
            release();
        }
    }

    /**
     * Waits for an event, for as long as it takes: the cheapest way to wait, with one system call, for threads that do
     * nothing else. It ends with the next event, and breaking a queue pair makes one (its work is flushed); nothing
     * else ends it, and until then this channel cannot be closed.
     *
     * @return the queue that has completions
     * @throws VerbsException the device is gone
     */
    public CompletionQueue takeEvent() {
        taking = true; // set before checking that the channel is open; close() does both in the opposite order
        try {
            long channel = nativeAddress();
            setBlocking(true);
            CompletionQueue queue;
            do {
                queue = getEvent(channel);
            } while (queue == null); // a signal
            return queue;
        } finally {
            taking = false;
        }
    }

    /**
     * Waits for an event.
     *
     * @param timeout the longest wait
     * @return the queue that has completions, or null if no event came
     * @throws VerbsException the device is gone
     */
    public @Nullable CompletionQueue awaitEvent(Duration timeout) {
        long deadline = System.nanoTime() + timeout.toNanos();
        long left = timeout.toNanos();
        while (true) {
            long now = left;
            runWhileOpen(ignored -> Calls.awaitReadable(errno, pollfd, now));
            CompletionQueue queue = tryGetEvent();
            left = deadline - System.nanoTime();
            if (queue != null || left <= 0) {
                return queue;
            }
        }
    }

    private void setBlocking(boolean wanted) {
        if (blocking != wanted) {
            Calls.setBlocking(errno, fd, wanted);
            blocking = wanted;
        }
    }

    private @Nullable CompletionQueue getEvent(long channel) {
        while (LibIbverbs.getCqEvent(errno, channel, event.address(), event.address() + CStruct.PTR.byteSize()) == 0) {
            int number = (int) event.get(CStruct.PTR, CStruct.PTR.byteSize());
            CompletionQueue queue;
            synchronized (queues) {
                queue = queues.get(number);
            }
            if (queue != null) {
                queue.onEvent();
                return queue;
            }
        }
        int cause = Errno.get(errno);
        if (cause == Errno.EAGAIN || cause == Errno.EINTR) {
            return null;
        }
        throw Failures.failure("ibv_get_cq_event", context.device().name(), cause);
    }

    /**
     * Reserves a number for a queue about to be made.
     *
     * @return the number
     */
    int reserve() {
        synchronized (queues) {
            int number = reserved.nextClearBit(0);
            reserved.set(number);
            if (number == queues.size()) {
                queues.add(null);
            }
            return number;
        }
    }

    /**
     * Says which queue a number means.
     *
     * @param number from {@link #reserve}
     * @param queue the queue, or null to give the number back
     */
    void assign(int number, @Nullable CompletionQueue queue) {
        synchronized (queues) {
            queues.set(number, queue);
            if (queue == null) {
                reserved.clear(number);
            }
        }
    }

    /**
     * The descriptor, for messages that may be made after closing.
     *
     * @return its number
     */
    int descriptorForMessages() {
        return fd;
    }

    @Override
    protected void destroy(long closing) {
        if (taking) {
            throw new IllegalStateException(
                    this
                            + " cannot be closed: a thread waits in takeEvent(). Break its queue pairs first, which ends the wait.");
        }
        Calls.check("ibv_destroy_comp_channel", context.device().name(), LibIbverbs.destroyCompChannel(closing));
    }

    @Override
    protected void freeMemory() {
        arena.close();
    }

    @Override
    public String toString() {
        return "CompletionChannel of " + context.device().name() + ", descriptor " + fd;
    }
}
