package org.verbena.transport.soft.uring;

import io.netty.channel.IoHandlerContext;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.IntSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.ffm.Errno;
import org.verbena.transport.ffm.ErrnoException;
import org.verbena.transport.ffm.IoUring;
import org.verbena.transport.ffm.MappedMemory;

/**
 * The ring of an event loop: one wait for its streams, for the sockets that a selector still has (listeners,
 * connections that are being set up, Netty's own channels), and for other threads. Completions are first taken from the
 * ring, all of them, and then handled; handling one may enter the kernel, and so find others. Not thread-safe except
 * for {@link #wakeup()} and {@link #enters()}; confined to the loop's thread from {@link #start} on.
 */
public final class RingLoop implements Ring.Completions {
    private static final Logger LOG = LoggerFactory.getLogger(RingLoop.class);

    // What an operation is for: the low bits of its id; above them is the stream's number.
    static final int RECEIVE = 0;
    static final int SEND = 1;
    static final int READABLE = 2;
    static final int WRITABLE = 3;
    private static final int CANCEL = 4;
    private static final int WAKE = 5;
    private static final int SELECTOR = 6;
    private static final int KIND_BITS = 3;

    /** Of a completion in the queue: all of the send was sent, and its memory is free again. */
    static final int SENT = 1 << 31;

    /** What a stream may have under way to be sent, copied: longer writes are the channel's. */
    static final int SLOT_BYTES = 8 << 10;

    /** Streams that may send at the same time; further ones write by themselves. */
    static final int SLOTS = 1024;

    private static final int AWAKE = 0;
    private static final int WAITING = 1;

    /** How long the end of a loop waits for what it has cancelled, which takes microseconds. */
    private static final long CLOSE_NANOS = TimeUnit.SECONDS.toNanos(5);

    private final Ring ring;
    private final int selector;
    private final IntSupplier selectNow;
    private final MemorySegment slotMemory;
    private final ByteBuffer slots;
    private final ByteBuffer buffers;
    private final int[] freeSlots = new int[SLOTS];
    private int freeSlotCount = SLOTS;
    private final AtomicInteger state = new AtomicInteger(AWAKE);
    private final List<@Nullable RingStream> streams = new ArrayList<>();
    private final List<Integer> freeNumbers = new ArrayList<>();
    private final List<RingStream> starved = new ArrayList<>();

    // Completions that were taken and not handled.
    private long[] ids = new long[64];
    private int[] results = new int[64];
    private int[] flags = new int[64];
    private int taken;
    private int handled;

    /** Operations without their last completion that are no stream's. */
    private int outstanding;

    private boolean wakeArmed;
    private boolean selectorArmed;
    private boolean selectorReady;
    private boolean selectorChanged = true;
    private long receivedBytes;

    /** Guarded by this; -1 once it is closed. */
    private int wake;

    private RingLoop(Ring ring, int selector, IntSupplier selectNow) throws IOException {
        this.ring = ring;
        this.selector = selector;
        this.selectNow = selectNow;
        slotMemory = MappedMemory.map((long) SLOTS * SLOT_BYTES + Long.BYTES);
        slots = slotMemory.asByteBuffer();
        buffers = ring.buffers().asByteBuffer();
        for (int i = 0; i < SLOTS; i++) {
            freeSlots[i] = SLOTS - 1 - i;
        }
        try (Arena call = Arena.ofConfined()) {
            wake = IoUring.eventfd(Errno.newCapture(call));
        }
        if (wake < 0) {
            MappedMemory.unmap(slotMemory);
            throw new ErrnoException("eventfd(2)", -wake);
        }
    }

    /**
     * Makes one.
     *
     * @param ring not started; this closes it
     * @param selector the descriptor of the loop's selector
     * @param selectNow handles what the selector finds at once, and returns how much that was
     * @return not started
     * @throws IOException there is no descriptor or no memory left; the ring is closed
     */
    static RingLoop on(Ring ring, int selector, IntSupplier selectNow) throws IOException {
        try {
            return new RingLoop(ring, selector, selectNow);
        } catch (IOException | RuntimeException refused) {
            ring.close(true);
            throw refused;
        }
    }

    /** On the loop's thread, before anything else. */
    public void start() {
        ring.start(this);
    }

    static long id(int number, int kind) {
        return (long) number << KIND_BITS | kind;
    }

    // Streams.

    /**
     * Takes a connected socket over; {@link RingStream#receive} follows.
     *
     * @param channel not blocking; no selector waits for it
     * @param owner gets its events
     * @return its place on the ring
     * @throws IOException its descriptor cannot be found
     */
    public RingStream add(SocketChannel channel, RingStream.Owner owner) throws IOException {
        return add(channel, SocketDescriptor.of(channel), owner);
    }

    RingStream add(SocketChannel channel, int descriptor, RingStream.Owner owner) {
        int number = freeNumbers.isEmpty() ? streams.size() : freeNumbers.removeLast();
        RingStream made = new RingStream(this, ring, number, channel, descriptor, owner);
        if (number == streams.size()) {
            streams.add(made);
        } else {
            streams.set(number, made);
        }
        return made;
    }

    /** A stream is closed, and the kernel has nothing of it. */
    void release(RingStream stream) {
        if (streams.get(stream.number) == stream) {
            streams.set(stream.number, null);
            freeNumbers.add(stream.number);
        }
    }

    void receiveLater(RingStream stream) {
        starved.add(stream);
    }

    void cancel(long target) {
        ring.cancel(target, id(0, CANCEL));
        outstanding++;
    }

    /** The receive buffers, for one callback at a time. */
    ByteBuffer buffers() {
        return buffers.clear();
    }

    void received(int buffer, int bytes) {
        assert buffer < Ring.BUFFERS && bytes <= Ring.BUFFER_BYTES : "the kernel overran a buffer";
        receivedBytes += bytes;
    }

    /** What came through the ring's buffers. */
    public long receivedBytes() {
        return receivedBytes;
    }

    int takeSlot() {
        return freeSlotCount == 0 ? -1 : freeSlots[--freeSlotCount];
    }

    void releaseSlot(int slot) {
        freeSlots[freeSlotCount++] = slot;
    }

    ByteBuffer slots() {
        return slots;
    }

    long slotAddress(int slot) {
        return slotMemory.address() + (long) slot * SLOT_BYTES;
    }

    /** Gives the kernel what was noted, and takes what it has done; that is handled later. */
    void settle() {
        ring.look();
    }

    // The loop.

    /** Something at the selector has changed, which takes effect when it selects. */
    public void selectorChanged() {
        selectorChanged = true;
    }

    /**
     * One turn: gives the kernel what was noted, waits if there is nothing to do, and handles what has come.
     *
     * @param context says whether to wait, and how long
     * @return how much was handled
     */
    public int turn(IoHandlerContext context) {
        int count = selectorChanged ? select() : 0;
        arm();
        if (count == 0 && handled == taken && context.canBlock()) {
            block(context);
        } else {
            ring.look();
        }
        if (!context.shouldReportActiveIoTime()) {
            return count + handle();
        }
        long start = System.nanoTime();
        count += handle();
        context.reportActiveIoTime(System.nanoTime() - start);
        return count;
    }

    private void arm() {
        if (!wakeArmed) {
            wakeArmed = true;
            outstanding++;
            ring.read(wake, slotMemory.address() + (long) SLOTS * SLOT_BYTES, id(0, WAKE));
        }
        if (!selectorArmed) {
            selectorArmed = true;
            outstanding++;
            ring.poll(selector, IoUring.POLLIN, id(0, SELECTOR));
        }
    }

    private void block(IoHandlerContext context) {
        state.set(WAITING);
        try {
            // Who adds a task after this finds the loop waiting, and wakes it.
            if (context.canBlock()) {
                ring.await(context.deadlineNanos() == -1 ? -1 : Math.max(0, context.delayNanos(System.nanoTime())));
            } else {
                ring.look();
            }
        } finally {
            state.set(AWAKE);
        }
    }

    private int select() {
        selectorChanged = false;
        selectorReady = false;
        return selectNow.getAsInt();
    }

    private int handle() {
        int count = handleTaken();
        if (selectorReady) {
            count += select();
        }
        return count;
    }

    private int handleTaken() {
        int count = 0;
        while (handled < taken) {
            int i = handled++;
            RingStream stream = streams.get((int) (ids[i] >>> KIND_BITS));
            if (stream != null) {
                stream.completed((int) ids[i] & (1 << KIND_BITS) - 1, results[i], flags[i]);
                count++;
            }
        }
        handled = 0;
        taken = 0;
        if (!starved.isEmpty()) {
            List<RingStream> now = List.copyOf(starved);
            starved.clear();
            now.forEach(RingStream::receiveAgain);
        }
        return count;
    }

    @Override
    public void completed(long id, int result, int more) {
        int kind = (int) id & (1 << KIND_BITS) - 1;
        switch (kind) {
            case CANCEL -> outstanding--;
            case WAKE -> {
                outstanding--;
                wakeArmed = false;
            }
            case SELECTOR -> {
                outstanding--;
                selectorArmed = false;
                selectorReady = true;
            }
            default -> {
                int with = more;
                RingStream stream = streams.get((int) (id >>> KIND_BITS));
                if (kind == SEND && stream != null && stream.sent(result)) {
                    with |= SENT;
                }
                if (taken == ids.length) {
                    ids = Arrays.copyOf(ids, 2 * taken);
                    results = Arrays.copyOf(results, 2 * taken);
                    flags = Arrays.copyOf(flags, 2 * taken);
                }
                ids[taken] = id;
                results[taken] = result;
                flags[taken++] = with;
            }
        }
    }

    /** Ends a wait. Any thread. */
    public void wakeup() {
        if (state.getAndSet(AWAKE) == WAITING) {
            synchronized (this) {
                // Under the monitor: once it is closed, the number may be another descriptor's.
                if (wake >= 0) {
                    IoUring.signal(wake);
                }
            }
        }
    }

    /** How often the kernel was entered. Any thread. */
    public long enters() {
        return ring.enters();
    }

    /** Ends everything that is under way, waits until the kernel has let go of the memory, and frees it. */
    public void close() {
        boolean idle = false;
        try {
            for (RingStream stream :
                    List.copyOf(streams.stream().filter(s -> s != null).toList())) {
                stream.close();
            }
            outstanding++;
            ring.cancelAll(id(0, CANCEL));
            long deadline = System.nanoTime() + CLOSE_NANOS;
            while (!isIdle() && deadline - System.nanoTime() > 0) {
                ring.await(TimeUnit.MILLISECONDS.toNanos(100));
                handleTaken();
            }
            idle = isIdle();
        } catch (UncheckedIOException refused) {
            LOG.error("ending a ring", refused);
        }
        synchronized (this) {
            IoUring.close(wake);
            wake = -1;
        }
        ring.close(idle);
        if (idle) {
            MappedMemory.unmap(slotMemory);
        } else {
            LOG.error("the kernel has not completed {} operations of a ring: their memory stays mapped", outstanding);
        }
    }

    private boolean isIdle() {
        return outstanding == 0 && freeNumbers.size() == streams.size();
    }
}
