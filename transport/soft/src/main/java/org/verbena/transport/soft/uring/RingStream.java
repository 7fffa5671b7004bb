package org.verbena.transport.soft.uring;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.net.SocketException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.ffm.Errno;
import org.verbena.transport.ffm.IoUring;

/**
 * A connected socket on a ring. What comes is received into the ring's buffers, and what is short is sent from the
 * ring's memory, so the kernel never holds memory of anybody else. Long payload is read and written by system calls of
 * the channel, straight from and to where it belongs; the ring then only says when that is possible.
 *
 * <pre>{@code
 * RECEIVING --readDirectly()--> CANCELLING --last completion--> DIRECT: onReadable, poll, onReadable...
 *     ^                                                            |
 *     +------------------------ receive() -------------------------+
 * }</pre>
 *
 * <p>After {@link #close()} the kernel may still use the ring's memory until the last completion: until then the ring
 * keeps this. Not thread-safe; confined to the loop's thread.
 */
public final class RingStream {
    private final RingLoop loop;
    private final Ring ring;
    private final SocketChannel channel;
    private final int descriptor;
    private final Owner owner;

    /** Its number on the loop. */
    final int number;

    /** Operations without their last completion. */
    int outstanding;

    private boolean receiving;
    private boolean direct;
    private boolean ended;
    private boolean closed;
    private boolean readablePolled;
    private boolean writablePolled;
    private boolean wantsWrite;

    /** What is being sent; -1 for nothing. */
    private int slot = -1;

    private int slotBytes;
    private int slotSent;
    private int ticket;
    private long sends;

    /** Whose socket it is. What it throws, it gets as a failure. */
    public interface Owner {
        /**
         * Bytes have come.
         *
         * @param buffer with the bytes, big-endian, its position and limit the callee's; valid during the call
         * @param segment the same memory
         * @param from where they begin; {@link Ring#HEADROOM_BYTES} before it are the callee's as well
         * @param bytes how many
         */
        void onReceived(ByteBuffer buffer, MemorySegment segment, int from, int bytes);

        /**
         * Nothing more comes.
         *
         * @param cause null if the peer has ended the stream
         */
        void onEnded(@Nullable IOException cause);

        /** The channel can be read, while that is {@linkplain #readDirectly() direct}. */
        void onReadable();

        /** More can be written. */
        void onWritable();

        /** Something was thrown. */
        void onFailure(Throwable cause);
    }

    RingStream(RingLoop loop, Ring ring, int number, SocketChannel channel, int descriptor, Owner owner) {
        this.loop = loop;
        this.ring = ring;
        this.number = number;
        this.channel = channel;
        this.descriptor = descriptor;
        this.owner = owner;
    }

    private long id(int kind) {
        return RingLoop.id(number, kind);
    }

    /** Whether operations may name the descriptor: the JDK closes a channel whose thread is interrupted. */
    private boolean isUsable() {
        return !closed && channel.isOpen();
    }

    // Receiving.

    /** Has the ring receive, from the beginning and after {@link #readDirectly()}. */
    public void receive() {
        direct = false;
        if (!receiving && !ended && isUsable()) {
            ring.receive(descriptor, id(RingLoop.RECEIVE));
            receiving = true;
            outstanding++;
        }
    }

    /** Has the owner read the channel by itself, once what the ring has received is delivered. */
    public void readDirectly() {
        if (!direct && !ended && !closed) {
            direct = true;
            if (receiving) {
                cancel(RingLoop.RECEIVE);
            }
        }
    }

    /** Whether the owner is to read the channel, or will be soon. */
    public boolean isDirect() {
        return direct;
    }

    /** Whether the owner may read the channel now: nothing that came before is with the ring. */
    public boolean mayRead() {
        return direct && !receiving;
    }

    private void onReceived(int result, int flags) {
        int buffer = Ring.buffer(flags);
        try {
            if (result > 0 && buffer >= 0 && !closed && !ended) {
                loop.received(buffer, result);
                owner.onReceived(
                        loop.buffers(),
                        ring.buffers(),
                        buffer * Ring.BUFFER_STRIDE + Ring.HEADROOM_BYTES,
                        Math.min(result, Ring.BUFFER_BYTES));
            }
        } catch (Throwable t) {
            owner.onFailure(t);
        } finally {
            if (buffer >= 0) {
                ring.provide(buffer);
            }
        }
        if (result > 0 && buffer < 0 && !closed && !ended) { // the kernel has lost what came
            end(new SocketException("the kernel received " + result + " bytes without a buffer"));
        }
        if ((flags & Ring.MORE) != 0) {
            return;
        }
        receiving = false;
        if (closed || ended) {
            return;
        }
        int error = result < 0 ? -result : 0;
        if (result == 0) {
            end(null);
        } else if (error == Errno.ENOBUFS) {
            loop.receiveLater(this);
        } else if (error != 0 && error != Errno.ECANCELED && !isForAMoment(error)) {
            end(failure("receiving", error));
        } else if (direct) {
            readNow();
        } else {
            receive();
        }
    }

    /** Buffers are there again. */
    void receiveAgain() {
        if (direct) {
            readNow();
        } else {
            receive();
        }
    }

    private void readNow() {
        if (closed || ended || !mayRead()) {
            return;
        }
        try {
            owner.onReadable();
        } catch (Throwable t) {
            owner.onFailure(t);
        }
        if (mayRead() && !readablePolled && isUsable()) {
            poll(IoUring.POLLIN, RingLoop.READABLE);
            readablePolled = true;
        }
    }

    private void end(@Nullable IOException cause) {
        ended = true;
        try {
            owner.onEnded(cause);
        } catch (Throwable t) {
            owner.onFailure(t);
        }
    }

    /** A signal of the kernel's thread that did it, or no other way to wait. */
    private static boolean isForAMoment(int error) {
        return error == Errno.EINTR || error == Errno.EAGAIN;
    }

    private static IOException failure(String what, int error) {
        return new SocketException(what + " failed with " + Errno.describe(error));
    }

    // Sending.

    /**
     * Takes bytes to send, if they are few.
     *
     * @param pieces what to send, in order
     * @param first of them
     * @param count of them
     * @return how many bytes were taken, which is all or 0: then {@link #awaitWritable} says when to try again; -1 if
     *     the channel is to write them
     */
    public long write(ByteBuffer[] pieces, int first, int count) {
        long bytes = 0;
        for (int i = first; i < first + count; i++) {
            bytes += pieces[i].remaining();
        }
        if (slot >= 0) {
            int unsent = slotBytes - slotSent;
            if (slotBytes + bytes > RingLoop.SLOT_BYTES || !ring.lengthen(ticket, unsent + (int) bytes)) {
                return 0;
            }
            try {
                slotBytes += copy(pieces, first, count, slotBytes);
            } catch (RuntimeException gone) { // the memory of a piece: nothing else is sent in its place
                ring.lengthen(ticket, unsent);
                throw gone;
            }
            return bytes;
        }
        int free = bytes > 0 && bytes <= RingLoop.SLOT_BYTES && isUsable() ? loop.takeSlot() : -1;
        if (free < 0) {
            return -1;
        }
        slot = free;
        slotSent = 0;
        try {
            slotBytes = copy(pieces, first, count, 0);
            send();
        } catch (RuntimeException refused) { // by the memory of a piece, or the kernel
            releaseSlot();
            throw refused;
        }
        return bytes;
    }

    /** Copies the pieces into the slot, from there on; returns how many bytes. */
    private int copy(ByteBuffer[] pieces, int first, int count, int from) {
        ByteBuffer to = loop.slots();
        int at = slot * RingLoop.SLOT_BYTES + from;
        to.limit(to.capacity()).position(at);
        for (int i = first; i < first + count; i++) {
            to.put(pieces[i]);
        }
        return to.position() - at;
    }

    private void send() {
        ticket = ring.send(descriptor, loop.slotAddress(slot) + slotSent, slotBytes - slotSent, id(RingLoop.SEND));
        sends++;
        outstanding++;
    }

    /** Whether bytes that were taken are not with TCP yet. */
    public boolean isSending() {
        return slot >= 0;
    }

    /** A number that changes with each of these times. */
    public long sends() {
        return sends;
    }

    /** Gives the kernel now what it does not have of this. */
    public void push() {
        if (slot >= 0) {
            ring.submit();
        }
    }

    /** Lets the kernel take what it can at once, and so ends {@link #isSending} unless the peer holds it up. */
    public void settle() {
        if (slot >= 0) {
            loop.settle();
        }
    }

    /** Whether {@link Owner#onWritable} is wanted once more can be written. */
    public void awaitWritable(boolean wanted) {
        wantsWrite = wanted;
        if (wanted && slot < 0 && !writablePolled && isUsable()) {
            poll(IoUring.POLLOUT, RingLoop.WRITABLE);
            writablePolled = true;
        }
    }

    /** The usual case, as soon as the completion is found: all was sent. Returns whether it was. */
    boolean sent(int result) {
        if (slot < 0 || slotSent + result != slotBytes) {
            return false;
        }
        releaseSlot();
        return true;
    }

    private void releaseSlot() {
        loop.releaseSlot(slot);
        slot = -1;
    }

    private void onSent(int result, boolean whole) {
        if (!whole) {
            slotSent += Math.max(0, result);
            if ((result > 0 || isForAMoment(-result)) && isUsable()) {
                send();
                return;
            }
            releaseSlot();
            if (!closed && !ended && result <= 0) {
                end(failure("sending", -result));
                return;
            }
        }
        onWritable();
    }

    private void onWritable() {
        if (wantsWrite && slot < 0 && !closed) {
            wantsWrite = false;
            try {
                owner.onWritable();
            } catch (Throwable t) {
                owner.onFailure(t);
            }
        }
    }

    private void poll(int events, int kind) {
        ring.poll(descriptor, events, id(kind));
        outstanding++;
    }

    private void cancel(int kind) {
        loop.cancel(id(kind));
    }

    /** An operation of this has completed. */
    void completed(int kind, int result, int flags) {
        if ((flags & Ring.MORE) == 0) {
            outstanding--;
        }
        switch (kind) {
            case RingLoop.RECEIVE -> onReceived(result, flags);
            case RingLoop.SEND -> onSent(result, (flags & RingLoop.SENT) != 0);
            case RingLoop.READABLE -> {
                readablePolled = false;
                readNow(); // unless it is left over, and what the ring receives comes first
            }
            default -> {
                writablePolled = false;
                onWritable();
            }
        }
        if (closed && outstanding == 0) {
            loop.release(this);
        }
    }

    /**
     * Leaves the ring, before the channel is closed: no callback follows. What was taken to be sent and TCP has no room
     * for is lost. Idempotent.
     */
    public void close() {
        if (closed) {
            return;
        }
        closed = true;
        ring.submitLast(descriptor); // which may soon be another's
        SocketDescriptor.forget(descriptor);
        if (receiving) {
            cancel(RingLoop.RECEIVE);
        }
        if (slot >= 0) {
            cancel(RingLoop.SEND);
        }
        if (readablePolled) {
            cancel(RingLoop.READABLE);
        }
        if (writablePolled) {
            cancel(RingLoop.WRITABLE);
        }
        if (outstanding == 0) {
            loop.release(this);
        }
    }

    @Override
    public String toString() {
        return "descriptor " + descriptor + " of " + channel;
    }
}
