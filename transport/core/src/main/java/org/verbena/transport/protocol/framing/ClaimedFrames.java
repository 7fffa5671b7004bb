package org.verbena.transport.protocol.framing;

import io.netty.buffer.ByteBuf;
import org.verbena.transport.protocol.handshake.Handshake;
import org.verbena.transport.protocol.sending.FrameSender;
import org.verbena.transport.protocol.sending.Obstacle;
import org.verbena.transport.protocol.sending.Operation;
import org.verbena.transport.protocol.sending.SendLedger;
import org.verbena.transport.protocol.sending.SendMemory;
import org.verbena.transport.protocol.wire.Wire;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.WorkRequest;

/**
 * Frames whose messages are written where they are sent from. Each is one operation, which takes messages until it is
 * posted, and has memory of its own:
 *
 * <pre>{@code
 * length 1 ... length n, u32 each | unused      | message 1 | ... | message n | unused
 * 0                                               512
 * }</pre>
 *
 * When the frame is posted, the lengths are moved up to the first message.
 */
public final class ClaimedFrames {
    /** Where the first message begins. */
    private static final int LENGTHS_BYTES = Wire.MAX_PACKED * Wire.PACKED_LENGTH_BYTES;

    /** The receiver works on one frame while the sender fills the next. */
    private static final int MOST_BYTES = (16 << 10) - LENGTHS_BYTES;

    private static final int FULL = -1;

    private final SendLedger ledger;
    private final SendMemory memory;
    private final FrameSender frames;
    private final Handshake handshake;

    public ClaimedFrames(SendLedger ledger, SendMemory memory, FrameSender frames, Handshake handshake) {
        this.ledger = ledger;
        this.memory = memory;
        this.frames = frames;
        this.handshake = handshake;
    }

    /** The longest message that can be claimed: a frame takes it once the peer's receives are as long as they get. */
    public int maxBytes() {
        return Math.min(Math.min(handshake.longestPayloadBytes(), MOST_BYTES), handshake.maxOutboundBytes());
    }

    private boolean isShared() {
        return handshake.haveFeature(Wire.FEATURE_PACKS);
    }

    /** How much memory a frame needs whose first message has so many bytes. */
    public int memoryBytes(int firstBytes) {
        return isShared()
                ? LENGTHS_BYTES + Math.max(firstBytes, Math.min(handshake.peerPayloadBytes(), MOST_BYTES))
                : Math.max(1, firstBytes);
    }

    /** Where the first message of a frame begins in its memory. */
    public int firstIndex() {
        return isShared() ? LENGTHS_BYTES : 0;
    }

    /** Whether a waiting operation is a frame with room for another message. */
    public boolean takes(Operation frame, int bytes) {
        int messageBytes = frame.totalBytes + bytes;
        int lengthsBytes = (frame.claimed + 1) * Wire.PACKED_LENGTH_BYTES;
        return frame.claimed > 0
                && frame.claimed < Wire.MAX_PACKED
                && !isPartlySent(frame)
                && messageBytes <= frame.claimRoomBytes
                && lengthsBytes + messageBytes <= handshake.peerPayloadBytes();
    }

    /**
     * Makes a new operation a frame with one message.
     *
     * @param owned its memory
     * @param index where the message begins
     * @param takesMore whether it is at the place of the first message, so that others may follow
     */
    public void begin(Operation frame, ByteBuf owned, int index, int bytes, boolean takesMore) {
        frame.message = owned;
        frame.index = index;
        frame.totalBytes = bytes;
        frame.remainingBytes = bytes;
        frame.claimed = 1;
        frame.claimRoomBytes = FULL;
        if (takesMore && isShared()) {
            frame.claimRoomBytes = owned.capacity() - LENGTHS_BYTES;
            owned.setInt(0, bytes);
        }
    }

    /** Notes the length of another message, whose bytes are behind those of the last, in a frame that takes it. */
    public void add(Operation frame, int bytes) {
        SendMemory.messageOf(frame).setInt(frame.claimed * Wire.PACKED_LENGTH_BYTES, bytes);
        frame.claimed++;
    }

    /** Whether a frame is one message that is longer than the peer's receives are still: it goes in fragments then. */
    boolean isInFragments(Operation frame) {
        return isPartlySent(frame) || frame.totalBytes > handshake.peerPayloadBytes();
    }

    private static boolean isPartlySent(Operation frame) {
        return frame.remainingBytes < frame.totalBytes;
    }

    /** Posts a frame; says why not. */
    Obstacle post(Endpoint endpoint, Operation frame) {
        if (frames.isOutOfGrants()) {
            return Obstacle.CREDIT;
        }
        int count = frame.claimed;
        boolean isPacked = count > 1;
        int lengthsBytes = isPacked ? count * Wire.PACKED_LENGTH_BYTES : 0;
        ByteBuf owned = SendMemory.messageOf(frame);
        if (frame.claimRoomBytes != FULL) {
            frame.claimRoomBytes = FULL;
            frame.index -= lengthsBytes;
            if (isPacked && frame.index > 0) {
                owned.setBytes(frame.index, owned, 0, lengthsBytes);
            }
        }
        int payloadBytes = lengthsBytes + frame.totalBytes;
        int type = isPacked ? Wire.PACKED : Wire.MESSAGE;
        int length = isPacked ? count : frame.totalBytes;
        boolean moreFollows = frame.next != null;
        if (frames.tryCopyMessage(endpoint, type, length, owned, frame.index, payloadBytes, moreFollows)) {
            frame.framePosted(frame.totalBytes, true);
            return Obstacle.NONE;
        }
        // Nobody waits for its completion.
        WorkRequest request = ledger.describeSend(Wire.HEADER_BYTES + payloadBytes, false);
        ledger.gatherSlot(Wire.HEADER_BYTES);
        if (memory.gatherPooled(frame, payloadBytes, 1, request.buffers()) != payloadBytes) {
            throw new IllegalStateException("a send buffer is not one piece of memory registered with this device");
        }
        frames.writeMessageHeader(type, length, moreFollows);
        boolean isDone = request.workId() == SendLedger.UNTRACKED;
        if (!frames.postMessage(endpoint, isDone ? null : frame)) {
            return Obstacle.SLOT;
        }
        frame.framePosted(frame.totalBytes, isDone);
        return Obstacle.NONE;
    }
}
