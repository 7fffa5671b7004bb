package org.verbena.transport.protocol.framing;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.CompositeByteBuf;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.protocol.handshake.Handshake;
import org.verbena.transport.protocol.receiving.Inbox;
import org.verbena.transport.protocol.receiving.ReceiveWindow;
import org.verbena.transport.protocol.rendezvous.RendezvousReceiver;
import org.verbena.transport.protocol.rendezvous.RendezvousSender;
import org.verbena.transport.protocol.sending.FrameSender;
import org.verbena.transport.protocol.sending.Obstacle;
import org.verbena.transport.protocol.sending.Operation;
import org.verbena.transport.protocol.sending.SendLedger;
import org.verbena.transport.protocol.sending.SendMemory;
import org.verbena.transport.protocol.wire.Wire;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.ScatterGatherList;

/**
 * Messages are bytes without boundaries: the bytes that wait at a flush are packed into frames as long as the peer's
 * receives.
 */
public final class StreamFramer extends HeadedFramer {
    /** Writes that together are not longer than this are copied into one SGE: that costs less than an SGE each. */
    private static final int COALESCED_BYTES = 2048;
    /** A write that is no longer than this may be the header of the next one. */
    private static final int HEADER_WRITE_BYTES = 64;
    /** A view of a composite with more pieces than this is copied. */
    private static final int MAX_VIEWED_PIECES = 4;
    /** The longest stretch that is advertised at once: the receiver needs memory for it in one piece. */
    private static final int STRETCH_BYTES = 1 << 20;

    /** The peer has closed its half. */
    private boolean peerEnded;

    public StreamFramer(
            SendLedger ledger,
            SendMemory memory,
            FrameSender frames,
            ReceiveWindow window,
            Inbox inbox,
            Handshake handshake,
            RendezvousSender sender,
            RendezvousReceiver receiver) {
        super(ledger, memory, frames, window, inbox, handshake, sender, receiver);
    }

    @Override
    public boolean hasBegun(Operation operation) {
        return true;
    }

    /** The next frame, with as much of what waits as goes into it. */
    @Override
    public Obstacle post(Endpoint endpoint, Operation operation) {
        if (operation.remainingBytes == 0 && !operation.end) {
            operation.posted = true; // an empty write, which is complete
            return Obstacle.NONE;
        }
        if (frames.isOutOfGrants()) {
            return Obstacle.CREDIT;
        }
        if (operation.end) {
            if (!frames.postMessageHeader(endpoint, operation, Wire.END)) {
                return Obstacle.SLOT;
            }
            operation.framePosted(0, false);
            return Obstacle.NONE;
        }
        if (operation.rendezvous || sender.wants(operation)) {
            if (sender.isFull()) {
                return Obstacle.SLOT;
            }
            int stretch = Math.min(operation.remainingBytes, Math.min(STRETCH_BYTES, handshake.maxOutboundBytes()));
            if (sender.gather(operation, stretch, handshake.peerPayloadBytes())) {
                operation.rendezvous = true;
                return sender.post(endpoint, operation, stretch);
            }
        }
        return postSegment(endpoint, operation);
    }

    /**
     * One frame with bytes of the message at the head of the queue and of those behind it, as many as one receive of
     * the peer takes.
     */
    private Obstacle postSegment(Endpoint endpoint, Operation first) {
        int wanted = segmentBytes(first);
        boolean single = wanted <= first.remainingBytes;
        if (single && wanted == first.totalBytes && tryCopy(endpoint, first, isMoreBehind(first, wanted))) {
            return Obstacle.NONE;
        }
        int payload = wanted;
        boolean inSlot = wanted <= SendLedger.SLOT_BYTES - Wire.HEADER_BYTES;
        ByteBuf copy = null;
        int copyIndex = 0;
        if (!inSlot && (single || wanted > COALESCED_BYTES)) {
            ledger.describeMessage(Wire.HEADER_BYTES + wanted, false);
            ledger.gatherSlot(Wire.HEADER_BYTES);
            payload = gatherSegment(first, wanted);
        }
        if (inSlot) {
            ledger.describeMessage(Wire.HEADER_BYTES + wanted, false);
            copy = ledger.slots();
            copyIndex = ledger.slotOffset() + Wire.HEADER_BYTES;
            memory.copySegment(first, copy, copyIndex, wanted);
            ledger.gatherSlot(Wire.HEADER_BYTES + wanted);
        } else if ((!single && wanted <= COALESCED_BYTES) || payload < wanted - wanted / 2) {
            payload = wanted;
            ledger.describeMessage(Wire.HEADER_BYTES + wanted, false);
            ledger.gatherSlot(Wire.HEADER_BYTES);
            copy = ledger.stage(endpoint, wanted);
            if (copy == null) {
                return Obstacle.MEMORY;
            }
            memory.copySegment(first, copy, 0, wanted);
        }
        boolean moreBehind = isMoreBehind(first, payload);
        boolean isDone = copy != null
                && frames.tryCopyMessage(endpoint, Wire.MESSAGE, payload, copy, copyIndex, payload, moreBehind);
        if (isDone) {
            ledger.dropStaged();
        } else {
            isDone = ledger.isDoneWhenPosted(inSlot, false);
            frames.writeMessageHeader(Wire.MESSAGE, payload, moreBehind);
            if (!frames.postMessage(endpoint, isDone ? null : first)) {
                return Obstacle.SLOT;
            }
        }
        int messages = segmentPosted(first, payload, isDone);
        if (!isDone) {
            ledger.lastHasMessages(messages);
        }
        return Obstacle.NONE;
    }

    /** Whether something waits behind the next segment. */
    private static boolean isMoreBehind(Operation first, int payload) {
        int left = payload;
        for (Operation operation = first; operation != null; operation = operation.next) {
            if (operation.kind != Operation.Kind.MESSAGE || operation.end || operation.remainingBytes > left) {
                return true;
            }
            left -= operation.remainingBytes;
        }
        return false;
    }

    /**
     * How long the next segment is. It fills the peer's receive, but ends between two writes if the next one would fit
     * into a segment of its own: a decoder that gets whole frames need not assemble them. A short write, as a frame's
     * header is, stays with what follows it.
     */
    private int segmentBytes(Operation first) {
        int full = handshake.peerPayloadBytes();
        int bytes = Math.min(first.remainingBytes, full);
        int boundary = bytes;
        for (Operation next = first.next; next != null; next = next.next) {
            if (next.kind != Operation.Kind.MESSAGE || next.end || sender.wants(next)) {
                break;
            }
            int room = full - bytes;
            if (next.remainingBytes > room && next.remainingBytes <= full && boundary >= full / 2) {
                return boundary;
            }
            if (room == 0) {
                break;
            }
            bytes += Math.min(next.remainingBytes, room);
            if (next.remainingBytes > HEADER_WRITE_BYTES) {
                boundary = bytes;
            }
        }
        return bytes;
    }

    /** Adds registered memory of the messages from this one on, without copying; returns the bytes covered. */
    private int gatherSegment(Operation first, int wanted) {
        ScatterGatherList into = ledger.request().buffers();
        int covered = 0;
        for (Operation next = first; next != null && covered < wanted; next = next.next) {
            int part = Math.min(next.remainingBytes, wanted - covered);
            if (part > 0) {
                int pieces = maxSges - into.count();
                boolean dear = pieces == 0 || isViewOfManyPieces(SendMemory.messageOf(next));
                int added = dear ? 0 : memory.gather(next, part, pieces, into);
                covered += added;
                if (added < part) {
                    break;
                }
            }
        }
        return covered;
    }

    /**
     * Netty's views of composite buffers do not reveal where they begin: finding their pieces costs more than copying
     * them, if there are many.
     */
    private static boolean isViewOfManyPieces(ByteBuf buffer) {
        if (buffer instanceof CompositeByteBuf || buffer.isContiguous()) {
            return false;
        }
        for (ByteBuf root = buffer.unwrap(); root != null; root = root.unwrap()) {
            if (root instanceof CompositeByteBuf composite) {
                return composite.numComponents() > MAX_VIEWED_PIECES;
            }
        }
        return false;
    }

    /** Advances the messages that a segment has bytes of; returns their number. */
    private int segmentPosted(Operation first, int payload, boolean isDone) {
        int messages = 0;
        int left = payload;
        Operation next = first;
        while (next != null && left > 0) {
            int part = Math.min(next.remainingBytes, left);
            next.framePosted(part, isDone);
            left -= part;
            messages++;
            next = next.next;
        }
        return messages;
    }

    @Override
    void accept(int type, ByteBuf buffer, int length) {
        if (type == Wire.END) {
            window.reuse(buffer);
            peerEnded = true;
            inbox.ended();
        } else {
            inbox.received(buffer);
        }
    }

    @Override
    @Nullable String violation(int type, ByteBuf buffer, int payload, int length) {
        if (peerEnded) {
            return "it sent " + Wire.name(type) + " after the end of its stream";
        }
        if (type == Wire.END) {
            return payload == 0 && length == 0 ? null : "it sent END of " + payload + " bytes of " + length;
        }
        if (type == Wire.RENDEZVOUS) {
            return advertisementViolation(length);
        }
        return type == Wire.MESSAGE && payload == length && payload > 0
                ? null
                : "it sent " + Wire.name(type) + " of " + payload + " bytes of " + Integer.toUnsignedString(length)
                        + " in a stream";
    }
}
