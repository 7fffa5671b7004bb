package org.verbena.transport.protocol.framing;

import io.netty.buffer.ByteBuf;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.protocol.handshake.Handshake;
import org.verbena.transport.protocol.rendezvous.RendezvousSender;
import org.verbena.transport.protocol.sending.FrameSender;
import org.verbena.transport.protocol.sending.Obstacle;
import org.verbena.transport.protocol.sending.Operation;
import org.verbena.transport.protocol.sending.SendLedger;
import org.verbena.transport.protocol.sending.SendMemory;
import org.verbena.transport.protocol.wire.Wire;
import org.verbena.transport.spi.Endpoint;

/**
 * Several messages in one frame: the short ones that wait at a flush, or for a grant, share a header, a grant, a work
 * request and a completion. Nothing waits in order to be packed.
 *
 * <pre>{@code
 * header, length = count | length 1 ... length count, u32 each | message 1 | ... | message count
 * }</pre>
 */
final class PackedFrames {
    /** A longer message has a frame of its own, without a copy: that costs less than to copy it at both ends. */
    private static final int MOST_MESSAGE_BYTES = 1024;
    /** The receiver works on one frame while the sender packs the next. */
    private static final int MOST_PAYLOAD_BYTES = 16 << 10;

    private static final ValueLayout.OfInt LENGTH = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.BIG_ENDIAN);
    private static final int[] NONE = {};

    private final SendLedger ledger;
    private final SendMemory memory;
    private final FrameSender frames;
    private final Handshake handshake;
    private final RendezvousSender sender;

    /** Of the frame that is being received. */
    private int[] lengths = NONE;

    PackedFrames(
            SendLedger ledger, SendMemory memory, FrameSender frames, Handshake handshake, RendezvousSender sender) {
        this.ledger = ledger;
        this.memory = memory;
        this.frames = frames;
        this.handshake = handshake;
        this.sender = sender;
    }

    /** How many messages from this one on may share a frame; less than two if it has one of its own. */
    int count(Operation first) {
        if (first.nextInOrder() == null || !handshake.haveFeature(Wire.FEATURE_PACKS)) {
            return 1;
        }
        int room = Math.min(handshake.peerPayloadBytes(), MOST_PAYLOAD_BYTES);
        int count = 0;
        for (Operation next = first; next != null && count < Wire.MAX_PACKED; next = next.nextInOrder()) {
            room -= Wire.PACKED_LENGTH_BYTES + next.totalBytes;
            if (!isPackable(next) || room < 0) {
                break;
            }
            count++;
        }
        return count;
    }

    private boolean isPackable(Operation operation) {
        int bytes = operation.totalBytes;
        return operation.claimed == 0
                && bytes <= MOST_MESSAGE_BYTES
                && bytes <= handshake.maxOutboundBytes()
                && bytes == operation.remainingBytes
                && !sender.wants(operation);
    }

    /**
     * Posts these messages in one frame, which has a copy of them.
     *
     * @return {@link Obstacle#MEMORY} if there is none for the copy now, or one of them cannot be read: the first may
     *     still go by itself
     */
    Obstacle post(Endpoint endpoint, Operation first, int count) {
        int bytes = 0;
        boolean areUnawaited = true;
        Operation behind = first;
        for (int i = 0; i < count && behind != null; i++) {
            bytes += behind.totalBytes;
            areUnawaited &= behind.isUnawaited;
            behind = behind.next;
        }
        int payload = count * Wire.PACKED_LENGTH_BYTES + bytes;
        boolean isInSlot = payload <= SendLedger.SLOT_BYTES - Wire.HEADER_BYTES;
        ledger.describeMessage(Wire.HEADER_BYTES + payload, areUnawaited);
        ByteBuf target;
        int start = 0;
        if (isInSlot) {
            target = ledger.slots();
            start = ledger.slotOffset() + Wire.HEADER_BYTES;
            ledger.gatherSlot(Wire.HEADER_BYTES + payload);
        } else {
            ledger.gatherSlot(Wire.HEADER_BYTES);
            target = ledger.tryStage(payload);
            if (target == null) {
                return Obstacle.MEMORY;
            }
        }
        int at = start;
        for (Operation next = first; next != null && next != behind; next = next.next) {
            target.setInt(at, next.totalBytes);
            at += Wire.PACKED_LENGTH_BYTES;
        }
        try {
            memory.copyTogether(first, target, at, bytes);
        } catch (RuntimeException unreadable) {
            // One of them cannot be read: each goes, or fails, by itself.
            ledger.dropStaged();
            return Obstacle.MEMORY;
        }
        boolean isDone = frames.tryCopyMessage(endpoint, Wire.PACKED, count, target, start, payload, behind != null);
        if (isDone) {
            ledger.dropStaged();
        } else {
            isDone = ledger.isDoneWhenPosted(isInSlot, areUnawaited);
            frames.writeMessageHeader(Wire.PACKED, count, behind != null);
            if (!frames.postMessage(endpoint, isDone ? null : first)) {
                return Obstacle.SLOT;
            }
        }
        // Count again: a frame listener may have sent more in the meantime.
        Operation next = first;
        for (int i = 0; i < count && next != null; i++) {
            next.framePosted(next.totalBytes, isDone);
            next = next.next;
        }
        if (!isDone) {
            ledger.lastHasMessages(count);
        }
        return Obstacle.NONE;
    }

    /**
     * What is wrong with a frame of several messages, or null. Nothing of it is delivered before all of it is known to
     * be right.
     *
     * @param buffer the receive, with the header at its index 0
     * @param payload bytes behind the header
     * @param count what the header says
     */
    @Nullable String violation(ByteBuf buffer, int payload, int count) {
        if (!handshake.haveFeature(Wire.FEATURE_PACKS)) {
            return "it sent a frame of several messages, which was not agreed on";
        }
        if (!isPossible(payload, count)) {
            return "it sent a frame of " + payload + " bytes with " + Integer.toUnsignedString(count) + " messages";
        }
        int left = payload - count * Wire.PACKED_LENGTH_BYTES;
        for (int i = 0; i < count; i++) {
            int length = buffer.getInt(Wire.HEADER_BYTES + i * Wire.PACKED_LENGTH_BYTES);
            if (length < 0 || length > left) {
                return "message " + (i + 1) + " of the " + count + " in its frame has "
                        + Integer.toUnsignedString(length) + " bytes where " + left + " are left";
            }
            if (length > handshake.maxInboundBytes()) {
                return "it sent a message of " + length + " bytes, over the limit of " + handshake.maxInboundBytes();
            }
            left -= length;
        }
        return left == 0 ? null : "its frame has " + left + " bytes behind the last of " + count + " messages";
    }

    private static boolean isPossible(int payload, int count) {
        return count >= 2 && count <= Wire.MAX_PACKED && payload >= count * Wire.PACKED_LENGTH_BYTES;
    }

    /**
     * Reads the lengths in a frame that lies in memory which the peer may change: each of them once.
     *
     * @param at where they begin
     * @param payload bytes from there on
     * @return the lengths, which are right, valid until the next call; null if the frame is not right
     */
    int @Nullable [] readLengths(MemorySegment memory, long at, int payload, int count) {
        if (!handshake.haveFeature(Wire.FEATURE_PACKS) || !isPossible(payload, count)) {
            return null;
        }
        if (lengths.length < count) {
            lengths = new int[Wire.MAX_PACKED];
        }
        int left = payload - count * Wire.PACKED_LENGTH_BYTES;
        for (int i = 0; i < count; i++) {
            int length = memory.get(LENGTH, at + (long) i * Wire.PACKED_LENGTH_BYTES);
            if (length < 0 || length > left || length > handshake.maxInboundBytes()) {
                return null;
            }
            lengths[i] = length;
            left -= length;
        }
        return left == 0 ? lengths : null;
    }
}
