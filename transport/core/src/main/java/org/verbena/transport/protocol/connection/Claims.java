package org.verbena.transport.protocol.connection;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.MessageClaims;
import org.verbena.transport.MessageTooLargeException;
import org.verbena.transport.protocol.framing.ClaimedFrames;
import org.verbena.transport.protocol.sending.ClaimedBuf;
import org.verbena.transport.protocol.sending.Operation;
import org.verbena.transport.protocol.sending.SendMemory;

/**
 * The claims of one connection. A frame that takes messages is an operation of the outbox from the first commit on. It
 * takes more while it is the last that waits there; so whatever else is sent keeps its place.
 *
 * <p>The memory of an open claim belongs to its frame's operation, which has the only reference; if that operation is
 * over before the claim, or has not begun, to this object.
 */
final class Claims implements MessageClaims {
    private static final int NONE = -1;

    private final MessageConnection connection;
    private final Parts parts;
    private final ClaimedFrames frames;
    private final ClaimedBuf view = new ClaimedBuf();

    private boolean isOpen;
    /** Of the open claim: the frame that it is in, or null if it is the first in a new one. */
    private @Nullable Operation frame;

    private ByteBuf memory = Unpooled.EMPTY_BUFFER;
    private int index;

    /** The length of the last claim that was refused, if there was no room for it since; else {@link #NONE}. */
    private int refusedBytes = NONE;

    Claims(MessageConnection connection, Parts parts, ClaimedFrames frames) {
        this.connection = connection;
        this.parts = parts;
        this.frames = frames;
    }

    @Override
    public int maxBytes() {
        return frames.maxBytes();
    }

    @Override
    public Outcome tryClaim(int lengthBytes) {
        return tryClaim(lengthBytes, false);
    }

    private Outcome tryClaim(int lengthBytes, boolean hasPosted) {
        if (isOpen) {
            throw new IllegalStateException("a claim of " + view.maxCapacity() + " bytes is open: commit or abort it");
        }
        if (lengthBytes < 0) {
            throw new IllegalArgumentException("a claim of " + lengthBytes + " bytes");
        }
        if (parts.life.isClosing()) {
            return Outcome.CLOSED;
        }
        if (!parts.life.isAgreed()) {
            return Outcome.BACK_PRESSURED; // it becomes writable when both ends have agreed
        }
        if (lengthBytes > frames.maxBytes()) {
            throw new MessageTooLargeException(
                    "a claim of " + lengthBytes + " bytes is over the limit of " + frames.maxBytes()
                            + " for this peer: send the message instead",
                    lengthBytes,
                    frames.maxBytes());
        }
        if (parts.outflow.isPosting()) {
            return refuse(lengthBytes);
        }
        Operation last = parts.outbox.lastWaiting();
        if (last != null && frames.takes(last, lengthBytes)) {
            last.isClaimOpen = true;
            open(last, SendMemory.messageOf(last), last.index + last.totalBytes, lengthBytes);
            return Outcome.CLAIMED;
        }
        if (last != null && !hasPosted) {
            connection.postNow(false);
            connection.settle(false); // it may report outcomes, and what is called may do anything
            return tryClaim(lengthBytes, true);
        }
        ByteBuf fresh = last == null ? tryAllocate(lengthBytes) : null;
        if (fresh == null) {
            return refuse(lengthBytes);
        }
        open(null, fresh, frames.firstIndex(), lengthBytes);
        return Outcome.CLAIMED;
    }

    private void open(@Nullable Operation in, ByteBuf of, int at, int lengthBytes) {
        frame = in;
        memory = of;
        index = at;
        isOpen = true;
        view.open(of, at, lengthBytes);
    }

    private @Nullable ByteBuf tryAllocate(int lengthBytes) {
        return parts.buffers.tryAllocateSend(frames.memoryBytes(lengthBytes));
    }

    private Outcome refuse(int lengthBytes) {
        refusedBytes = lengthBytes;
        if (parts.outbox.updateWritable(true)) {
            parts.callbacks.writabilityChanged(false);
        }
        connection.settle(true);
        return Outcome.BACK_PRESSURED;
    }

    /** Whether a claim was refused, and no room was found for it since. */
    boolean isRefused() {
        return refusedBytes != NONE;
    }

    /** Whether there is still no room after a refusal. Tries again after a while if memory is missing. */
    boolean isHeldUp() {
        if (refusedBytes != NONE && parts.outbox.isNoneWaiting()) {
            ByteBuf room = tryAllocate(refusedBytes);
            if (room == null) {
                parts.timeouts.retry();
            } else {
                room.release();
                refusedBytes = NONE;
            }
        }
        return isRefused();
    }

    @Override
    public ByteBuf buffer() {
        return view;
    }

    @Override
    public boolean commit() {
        if (!isOpen) {
            if (parts.life.isDisconnected()) {
                return false;
            }
            throw new IllegalStateException("no claim is open");
        }
        int bytes = view.writerIndex();
        Operation in = frame;
        ByteBuf claimed = memory;
        int at = index;
        boolean isHeld = end();
        if (parts.life.isClosing()) {
            if (!isHeld) {
                claimed.release();
            }
            return false;
        }
        if (isHeld
                && in != null
                && in == parts.outbox.lastWaiting()
                && frames.takes(in, bytes)
                && !parts.outflow.isPosting()) {
            frames.add(in, bytes);
            parts.outbox.grow(in, bytes);
            return true;
        }
        if (isHeld) {
            claimed.retain();
        }
        Operation fresh = parts.outbox.newOperation(Operation.Kind.MESSAGE, null, null);
        frames.begin(fresh, claimed, at, bytes, in == null);
        parts.outbox.submit(fresh);
        return true;
    }

    @Override
    public void abort() {
        if (isOpen) {
            ByteBuf claimed = memory;
            if (!end()) {
                claimed.release();
            }
        }
    }

    /** Ends the open claim; returns whether an operation holds its memory. */
    private boolean end() {
        Operation in = frame;
        boolean isHeld = in != null && in.isClaimOpen;
        if (in != null) {
            in.isClaimOpen = false;
        }
        view.close();
        isOpen = false;
        frame = null;
        memory = Unpooled.EMPTY_BUFFER;
        return isHeld;
    }

    @Override
    public void flush() {
        connection.flush();
    }
}
