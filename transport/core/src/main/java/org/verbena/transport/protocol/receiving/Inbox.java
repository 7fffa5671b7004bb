package org.verbena.transport.protocol.receiving;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.util.concurrent.FastThreadLocal;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.buffer.RegisteredByteBuf;
import org.verbena.transport.protocol.memory.HeldByUser;
import org.verbena.transport.protocol.memory.MessageBuffers;
import org.verbena.transport.protocol.state.ConnectionCounters;
import org.verbena.transport.protocol.state.FreeList;
import org.verbena.transport.protocol.state.Lifecycle;
import org.verbena.transport.protocol.wire.Wire;

/**
 * Delivers inbound messages in order: at once if none is before it and the user reads, otherwise from a list. A message
 * in fragments takes its memory whole, and in turn with all other connections of the device; without, its fragments
 * wait in their receives, at most a window of them.
 */
public final class Inbox {
    /**
     * A segment of a stream that fills no more than this part of its receive buffer is copied out, so that a program
     * that keeps it does not keep the buffer.
     */
    private static final int SMALL_SEGMENT_DIVISOR = 8;
    /**
     * When memory is scarce or the user holds much, a message that fills no more than this part of its receive is
     * copied out of it.
     */
    private static final int SCARCE_SEGMENT_DIVISOR = 2;

    private static final FastThreadLocal<FreeList<Inbound>> FREE = FreeList.perLoop();

    private final Lifecycle life;
    private final ReceiveWindow window;
    private final ConnectionCounters counters;
    private final InboxListener listener;
    private final MessageBuffers.Waiter waiter;
    private final boolean stream;
    private final LongSupplier clock;
    /** Bytes of messages, other than in receive buffers, that the user holds or is about to get. */
    private final HeldByUser heldByUser;

    @SuppressWarnings("NullAway.Init") // set by prepare
    private MessageBuffers buffers;

    private @Nullable Inbound head;
    private @Nullable Inbound tail;
    /** Messages in fragments that are not complete, or wait for memory. */
    private final ArrayDeque<Inbound> assembling = new ArrayDeque<>(0);
    /** Their fragments that wait in their receives for memory for all of a message. */
    private final ArrayDeque<ByteBuf> parked = new ArrayDeque<>(0);
    /**
     * Messages without memory, in their order. Only the first may take some: one that is delivered later would hold
     * what those before it wait for. With STREAM framing there are none: what comes by rendezvous does not wait.
     */
    private final ArrayDeque<Inbound> memoryless = new ArrayDeque<>(0);
    /** The message whose fragments come now. */
    private @Nullable Inbound open;
    /** In the queue for memory for a whole message. */
    private boolean waitsForMemory;

    private long takenBytes;
    private long finished;

    private boolean reading = true;
    private boolean delivered;
    /** The message that is being delivered came earlier: its first part, or its advertisement. */
    private boolean delayed;

    private long arrivedNanos;
    /** Receives of what is not delivered, and of fragments that came while the user did not read. */
    private int queuedReceives;

    private int unreadFragments;

    /**
     * Makes an empty one.
     *
     * @param listener given what is delivered
     * @param waiter notified when there may be memory for a message
     * @param clock asked when a message begins that is not delivered at once
     */
    public Inbox(
            Lifecycle life,
            ReceiveWindow window,
            ConnectionCounters counters,
            InboxListener listener,
            MessageBuffers.Waiter waiter,
            boolean stream,
            LongSupplier clock) {
        this.life = life;
        this.window = window;
        this.counters = counters;
        this.listener = listener;
        this.waiter = waiter;
        this.stream = stream;
        this.clock = clock;
        heldByUser = new HeldByUser(waiter::onMemoryFreed);
    }

    public void prepare(MessageBuffers memory) {
        buffers = memory;
    }

    public boolean isReading() {
        return reading;
    }

    public void setReading(boolean reading) {
        this.reading = reading;
        if (reading) {
            unreadFragments = 0;
        } else if (isDeliverable()) {
            Inbound first = memoryless.peek();
            if (first != null && first.rendezvous) {
                stopWaiting(); // the user does not read now, so others need not wait for this message
            }
        }
    }

    private boolean isDeliverable() {
        return !life.isCloseRequested() && (life.isAgreed() || life.is(Lifecycle.Phase.LINGERING));
    }

    /** Receives that hold what was not delivered. */
    public int undelivered() {
        return queuedReceives + unreadFragments + parked.size();
    }

    /** Whether anything waits to be delivered. */
    public boolean hasReady() {
        return head != null && head.ready;
    }

    /** Whether nothing waits, neither to be delivered nor for memory. */
    public boolean isEmpty() {
        return head == null;
    }

    /** Whether a message has begun and is not complete. */
    public boolean isWithinMessage() {
        return open != null;
    }

    /** Whether the message that has begun has its memory. */
    public boolean isMessageInMemory() {
        Inbound inbound = open;
        return inbound != null && inbound.message != null;
    }

    /** The total number of bytes that arrived in fragments. */
    public long takenBytes() {
        return takenBytes;
    }

    /** The total number of complete messages that arrived in fragments. */
    public long finished() {
        return finished;
    }

    /** How much of the message that has begun is still to come; 0 if none has. */
    public int expectedBytes() {
        return open == null ? 0 : open.remainingBytes;
    }

    public Inbound newInbound() {
        Inbound inbound = FREE.get().poll();
        if (inbound == null) {
            inbound = new Inbound();
        }
        inbound.arrivedNanos = clock.getAsLong();
        return inbound;
    }

    public void recycle(Inbound inbound) {
        inbound.reset();
        FREE.get().add(inbound);
    }

    /** Appends what is delivered next, in its turn and when it is ready. */
    void append(Inbound inbound) {
        queuedReceives += inbound.receives;
        if (tail == null) {
            head = inbound;
        } else {
            tail.next = inbound;
        }
        tail = inbound;
    }

    /** Whether a message that comes now is delivered at once. */
    public boolean isNext() {
        return head == null && reading && isDeliverable();
    }

    /**
     * A copy of a message that lies in memory of the endpoint, in memory of its own size, within this connection's
     * share. None is made while memory is scarce, or someone waits for it.
     *
     * @return null if there is none: then the message belongs in a receive
     */
    @Nullable ByteBuf tryCopy(MemorySegment memory, long at, int bytes) {
        RegisteredByteBuf copy = buffers.isScarce() ? null : tryAllocateWithinShare(Math.max(1, bytes));
        if (copy != null) {
            charge(copy, copy.blockBytes());
            copy.write(memory, at, bytes);
        }
        return copy;
    }

    /** A message that was copied when it {@linkplain #isNext was the next}; it waits if it is not so any more. */
    void arrivedCopied(ByteBuf message) {
        if (isNext()) {
            deliver(message, false, Notice.NONE, 0, 0);
        } else if (isDeliverable()) {
            Inbound inbound = newInbound();
            inbound.ready = true;
            inbound.message = message;
            append(inbound);
        } else {
            message.release();
        }
    }

    /** A message in one receive, from its reader index on. */
    public void received(ByteBuf buffer) {
        if (exchanged(buffer)) {
            arrived(buffer, false, Notice.NONE, 0, 0);
            return;
        }
        ByteBuf copy = copiedOut(buffer);
        arrived(copy == null ? buffer : copy, copy == null, Notice.NONE, 0, 0);
    }

    /**
     * Several messages in one receive, whose lengths are known to be right and begin at the reader index. Those that
     * the user does not read wait in the receive, which counts until the last of them is delivered.
     */
    public void receivedPacked(ByteBuf buffer, int count) {
        Inbound inbound = newInbound();
        inbound.ready = true;
        inbound.receives = 1;
        inbound.message = buffer;
        inbound.packedLeft = count;
        inbound.packedLengthIndex = buffer.readerIndex();
        buffer.skipBytes(count * Wire.PACKED_LENGTH_BYTES);
        boolean first = head == null;
        append(inbound);
        if (first) {
            deliverReady();
        }
    }

    /**
     * Makes a large segment of a stream a message of this connection's share if the user holds many receives, as a
     * decoder does while it puts a message together. The window gets another receive for it: that takes the memory of a
     * copy, without copying.
     *
     * @return false if it is to be copied, or counts against the window
     */
    private boolean exchanged(ByteBuf buffer) {
        if (!stream
                || buffer.readableBytes() <= window.bufferBytes() / SCARCE_SEGMENT_DIVISOR
                || !window.isUserSlow()
                || !(buffer instanceof RegisteredByteBuf)) {
            return false;
        }
        ByteBuf other = tryAllocateWithinShare(window.bufferBytes());
        if (other == null) {
            return false;
        }
        charge(buffer, window.bufferBytes());
        window.reuse(other);
        return true;
    }

    /**
     * Copies what came into memory of its own size, if it would be a waste to let the user keep the receive buffer:
     * small segments of a stream, which decoders keep while they wait for more; and what is not large, while the user
     * holds many receives or memory is scarce.
     *
     * @return null if the receive buffer itself is delivered
     */
    private @Nullable ByteBuf copiedOut(ByteBuf buffer) {
        int payload = buffer.readableBytes();
        boolean scarce = window.isStarved() || window.isUserSlow();
        int limit;
        if (stream) {
            limit = scarce ? Integer.MAX_VALUE : window.bufferBytes() / SMALL_SEGMENT_DIVISOR;
        } else {
            limit = scarce ? window.bufferBytes() / SCARCE_SEGMENT_DIVISOR : -1;
        }
        if (payload > limit) {
            return null;
        }
        ByteBuf copy = tryAllocateWithinShare(payload);
        if (copy != null) {
            charge(copy, payload);
        } else {
            if (!stream) {
                return null;
            }
            // The user holds all of it, and may be waiting for the next bytes: they must not wait for memory.
            try {
                copy = ByteBufAllocator.DEFAULT.directBuffer(payload);
            } catch (OutOfMemoryError noDirectMemory) {
                return null; // of the JVM, which may have some later: no reason to lose the segment
            }
        }
        copy.writeBytes(buffer);
        window.reuse(buffer);
        return copy;
    }

    /**
     * Memory of the pool, out of turn; null if there is none, or the user holds this connection's share of it, what it
     * is about to get included.
     */
    private @Nullable RegisteredByteBuf tryAllocateWithinShare(int bytes) {
        if (heldByUser.held() + bytes > buffers.shareBytes()) {
            return null;
        }
        return buffers.tryAllocateReceive(bytes);
    }

    private void charge(ByteBuf memory, int bytes) {
        if (memory instanceof RegisteredByteBuf pooled) {
            heldByUser.charge(bytes);
            pooled.chargeTo(heldByUser, bytes);
        }
    }

    /**
     * Memory of the pool for a stretch of a stream that comes by rendezvous: within this connection's share, and only
     * while no connection waits for a message's.
     *
     * @return null if the stretch must have memory of its own, since a stream does not wait
     */
    public @Nullable ByteBuf tryAllocateStretch(int bytes) {
        if (heldByUser.held() + bytes > buffers.shareBytes()) {
            return null;
        }
        ByteBuf memory = buffers.tryAllocateStretch(bytes, waiter, heldByUser);
        if (memory != null) {
            heldByUser.charge(bytes);
        }
        return memory;
    }

    /** A whole message, or a notice, or both: delivered now if nothing is before it. */
    public void arrived(
            @Nullable ByteBuf message, boolean inReceive, Notice notice, int noticeWord, int noticeLengthBytes) {
        if (isNext()) {
            deliver(message, inReceive, notice, noticeWord, noticeLengthBytes);
            return;
        }
        Inbound inbound = newInbound();
        inbound.ready = true;
        inbound.message = message;
        inbound.inReceive = inReceive;
        inbound.notice = notice;
        inbound.noticeWord = noticeWord;
        inbound.noticeLengthBytes = noticeLengthBytes;
        inbound.receives = 1;
        append(inbound);
    }

    /** The peer has ended its half of the stream. */
    public void ended() {
        if (isNext()) {
            deliverEnd();
            return;
        }
        Inbound inbound = newInbound();
        inbound.ready = true;
        inbound.end = true;
        inbound.receives = 1;
        append(inbound);
    }

    /** The first fragment of a message. */
    public void begin(ByteBuf fragment, int lengthBytes) {
        Inbound inbound = newInbound();
        inbound.totalBytes = lengthBytes;
        inbound.remainingBytes = lengthBytes;
        open = inbound;
        assembling.add(inbound);
        memoryless.add(inbound);
        append(inbound);
        proceed(fragment);
    }

    /** The next fragment: it goes into the message's memory, or waits in its receive until there is some. */
    public void proceed(ByteBuf fragment) {
        Inbound inbound = open;
        if (inbound == null) {
            throw new IllegalStateException("a fragment of no message");
        }
        takenBytes += fragment.readableBytes();
        inbound.remainingBytes -= fragment.readableBytes();
        if (inbound.remainingBytes == 0) {
            open = null;
            finished++;
        }
        parked.add(fragment);
        inbound.parkedFragments++;
        assemble();
    }

    /** The peer has advertised a message: it is read into memory that it gets in its turn. */
    public void advertised(Inbound inbound) {
        if (!stream) {
            memoryless.add(inbound);
        }
        append(inbound);
    }

    /**
     * Moves fragments into their messages' memory, which each message takes whole, as far as there is some. Returns
     * whether that freed receives.
     */
    public boolean assemble() {
        boolean moved = false;
        for (Inbound inbound = assembling.peek(); inbound != null; inbound = assembling.peek()) {
            if (inbound.message == null && !tryAllocateMessage(inbound)) {
                return moved;
            }
            moved |= inbound.parkedFragments > 0;
            moveFragments(inbound);
            if (inbound.remainingBytes > 0) {
                return moved;
            }
            inbound.ready = true;
            assembling.remove();
        }
        return moved;
    }

    private void moveFragments(Inbound inbound) {
        ByteBuf message = inbound.message;
        for (; inbound.parkedFragments > 0 && message != null; inbound.parkedFragments--) {
            ByteBuf fragment = parked.remove();
            message.writeBytes(fragment);
            window.reuse(fragment);
            if (!reading) {
                unreadFragments++;
            }
        }
    }

    /**
     * Takes memory for a whole message: when those before it have theirs, the user holds no more than this connection's
     * share of the budget, and it is this connection's turn. A message of any length comes while the user keeps within
     * the share: a program that keeps a message for good still gets all others.
     */
    public boolean tryAllocateMessage(Inbound inbound) {
        if (!inbound.equals(memoryless.peek())) {
            return false;
        }
        int bytes = inbound.totalBytes;
        if (isOverShare()) {
            heldByUser.watch();
            if (isOverShare()) {
                stopWaiting(); // others need not wait for this connection's user
                return false;
            }
        }
        ByteBuf message = buffers.tryAllocateMessage(bytes, waiter, heldByUser);
        if (message == null) {
            if (!waitsForMemory) {
                waitsForMemory = true;
                counters.memoryStallBegan();
            }
            return false;
        }
        waitsForMemory = false;
        heldByUser.charge(bytes);
        inbound.message = message;
        memoryless.remove();
        return true;
    }

    /** Returns the memory that a message could not use: the message is the first to get some again. */
    public void giveMemoryBack(Inbound inbound) {
        inbound.releaseMemory();
        if (!stream) {
            memoryless.addFirst(inbound);
        }
    }

    /** Whether a message waits in the queue for memory. */
    public boolean isWaitingForMemory() {
        return waitsForMemory;
    }

    private boolean isOverShare() {
        return heldByUser.held() > buffers.shareBytes();
    }

    private void stopWaiting() {
        if (waitsForMemory) {
            waitsForMemory = false;
            buffers.forgetMessage(waiter);
        }
    }

    /** Delivers what is ready, as long as the user reads. */
    public void deliverReady() {
        while (head != null && head.ready && reading && isDeliverable()) {
            Inbound inbound = head;
            ByteBuf message = inbound.message;
            if (inbound.packedLeft > 0 && message != null) {
                delayed = true;
                arrivedNanos = inbound.arrivedNanos;
                deliver(nextPacked(inbound, message), false, Notice.NONE, 0, 0);
                continue;
            }
            removeHead();
            boolean inReceive = inbound.inReceive;
            Notice notice = inbound.notice;
            int word = inbound.noticeWord;
            int lengthBytes = inbound.noticeLengthBytes;
            boolean end = inbound.end;
            delayed = true;
            arrivedNanos = inbound.arrivedNanos;
            recycle(inbound);
            if (end) {
                deliverEnd();
            } else {
                deliver(message, inReceive, notice, word, lengthBytes);
            }
        }
        delayed = false;
    }

    private void removeHead() {
        Inbound inbound = head;
        if (inbound != null) {
            head = inbound.next;
            if (head == null) {
                tail = null;
            }
            inbound.next = null;
            queuedReceives -= inbound.receives;
        }
    }

    /**
     * The next message of the first receive in the list; the last one ends it. It is copied out into memory of its own
     * size, within this connection's share: that costs less than an object for a slice, and a message that the user
     * keeps does not hold the receive. Beyond the share it is a slice, and the receive counts as the user's.
     */
    private ByteBuf nextPacked(Inbound inbound, ByteBuf receive) {
        int length = receive.getInt(inbound.packedLengthIndex);
        if (length < 0 || length > receive.readableBytes()) {
            // It was checked when it came: only a trusted peer can write to a receive, see MessageOptions#trustedPeers.
            throw new IllegalStateException("the peer has changed a frame that it had sent");
        }
        inbound.packedLengthIndex += Wire.PACKED_LENGTH_BYTES;
        RegisteredByteBuf copy = tryAllocateWithinShare(Math.max(1, length));
        ByteBuf message;
        if (copy != null) {
            charge(copy, copy.blockBytes());
            receive.readBytes(copy, length);
            message = copy;
        } else {
            if (!inbound.packedHeld) {
                inbound.packedHeld = true;
                window.delivered(receive);
            }
            message = receive.readRetainedSlice(length);
        }
        if (--inbound.packedLeft == 0) {
            boolean held = inbound.packedHeld;
            removeHead();
            recycle(inbound);
            if (held) {
                receive.release();
            } else {
                window.reuse(receive);
            }
        }
        return message;
    }

    /** When the message that is being delivered began to arrive; {@code otherwise} if it is delivered as it arrives. */
    public long arrivalNanos(long otherwise) {
        return delayed ? arrivedNanos : otherwise;
    }

    private void deliver(@Nullable ByteBuf message, boolean inReceive, Notice notice, int word, int lengthBytes) {
        delivered = true;
        if (message != null) {
            counters.messageReceived(message.readableBytes());
            if (inReceive) {
                window.delivered(message);
            }
        }
        listener.arrived(notice, word, lengthBytes, message);
    }

    private void deliverEnd() {
        delivered = true;
        listener.end();
    }

    /** Reports the end of a batch of deliveries, if there were any. */
    public void readComplete() {
        if (delivered) {
            delivered = false;
            listener.readComplete();
        }
    }

    /**
     * This end is closing: what came is dropped, but messages that the peer has advertised are still read, so that a
     * peer that is closing as well can finish.
     */
    public void discard() {
        releaseParked();
        stopWaiting();
        unreadFragments = 0;
        Inbound inbound = head;
        head = null;
        tail = null;
        queuedReceives = 0;
        while (inbound != null) {
            Inbound next = inbound.next;
            inbound.next = null;
            inbound.receives = 0;
            if (inbound.rendezvous && !inbound.ready) {
                append(inbound);
                if (inbound.message == null && !stream) {
                    memoryless.add(inbound);
                }
            } else {
                inbound.releaseMemory();
                recycle(inbound);
            }
            inbound = next;
        }
    }

    /**
     * The connection has ended: what can never become complete is dropped. A message whose fragments have all come may
     * still wait for memory.
     */
    public void dropIncomplete() {
        open = null;
        Inbound last = null;
        Inbound inbound = head;
        int keptFragments = 0;
        while (inbound != null && (inbound.ready || inbound.hasCome())) {
            keptFragments += inbound.parkedFragments;
            last = inbound;
            inbound = inbound.next;
        }
        while (parked.size() > keptFragments) {
            window.reuse(parked.removeLast());
        }
        for (Inbound dropped = inbound; dropped != null; dropped = dropped.next) {
            assembling.remove(dropped);
            memoryless.remove(dropped);
        }
        if (memoryless.isEmpty()) {
            stopWaiting();
        }
        dropFrom(inbound);
        tail = last;
        if (last == null) {
            head = null;
        } else {
            last.next = null;
        }
    }

    /** Nothing will be delivered any more. */
    public void clear() {
        releaseParked();
        stopWaiting();
        Inbound first = head;
        head = null;
        tail = null;
        dropFrom(first);
    }

    private void dropFrom(@Nullable Inbound first) {
        Inbound inbound = first;
        while (inbound != null) {
            Inbound next = inbound.next;
            inbound.releaseMemory();
            recycle(inbound);
            inbound = next;
        }
    }

    private void releaseParked() {
        open = null;
        assembling.clear();
        memoryless.clear();
        for (ByteBuf fragment = parked.poll(); fragment != null; fragment = parked.poll()) {
            window.reuse(fragment);
        }
    }

    @Override
    public String toString() {
        return "queued " + queuedReceives + "+" + unreadFragments + (reading ? "" : ", not reading")
                + (head == null ? "" : head.ready ? ", messages wait" : ", a message is incomplete")
                + (waitsForMemory ? ", waits for memory for it" : "");
    }
}
