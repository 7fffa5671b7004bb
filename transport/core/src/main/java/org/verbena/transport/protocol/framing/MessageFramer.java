package org.verbena.transport.protocol.framing;

import io.netty.buffer.ByteBuf;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.Framing;
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
import org.verbena.transport.spi.WorkRequest;

/**
 * Messages keep their boundaries: one frame each, or one for several, or several fragments, or an advertisement.
 */
public final class MessageFramer extends HeadedFramer {
    /**
     * A fragment that is not the last fills at least this part of the receiver's shortest buffers, so that the receiver
     * cannot be made to hold many buffers for few bytes.
     */
    private static final int MIN_FRAGMENT_DIVISOR = 4;

    private static final String WITHIN_ANOTHER = "it began a message within another";

    private final PackedFrames packed;
    private final ClaimedFrames claimed;

    public MessageFramer(
            SendLedger ledger,
            SendMemory memory,
            FrameSender frames,
            ReceiveWindow window,
            Inbox inbox,
            Handshake handshake,
            RendezvousSender sender,
            RendezvousReceiver receiver) {
        super(ledger, memory, frames, window, inbox, handshake, sender, receiver);
        packed = new PackedFrames(ledger, memory, frames, handshake, sender);
        claimed = new ClaimedFrames(ledger, memory, frames, handshake);
    }

    /** The frames that messages are written into. */
    public ClaimedFrames claimed() {
        return claimed;
    }

    /** Nobody would be told of messages that were claimed, so a refusal of their frame ends the connection. */
    @Override
    public boolean hasBegun(Operation operation) {
        return operation.remainingBytes < operation.totalBytes || operation.claimed > 0;
    }

    @Override
    public Obstacle post(Endpoint endpoint, Operation operation) {
        boolean isClaimed = operation.claimed > 0;
        if (isClaimed && !claimed.isInFragments(operation)) {
            return claimed.post(endpoint, operation);
        }
        if (!hasBegun(operation) && operation.totalBytes > handshake.maxOutboundBytes()) {
            return refuse(operation, handshake.maxOutboundBytes());
        }
        if (frames.isOutOfGrants()) {
            return Obstacle.CREDIT;
        }
        if (!isClaimed && sender.wants(operation)) {
            if (sender.isFull()) {
                return Obstacle.SLOT;
            }
            if (sender.gather(operation, operation.totalBytes, handshake.peerPayloadBytes())) {
                return sender.post(endpoint, operation, operation.totalBytes);
            }
        }
        int together = packed.count(operation);
        if (together > 1) {
            Obstacle obstacle = packed.post(endpoint, operation, together);
            if (obstacle != Obstacle.MEMORY) {
                return obstacle;
            }
        }
        return tryCopy(endpoint, operation, operation.next != null) ? Obstacle.NONE : postFragment(endpoint, operation);
    }

    private Obstacle postFragment(Endpoint endpoint, Operation operation) {
        int type = operation.remainingBytes < operation.totalBytes ? Wire.CONTINUATION : Wire.MESSAGE;
        int room = handshake.peerPayloadBytes();
        int wanted = Math.min(operation.remainingBytes, room);
        int payload = wanted;
        boolean inSlot = false;
        WorkRequest request = ledger.describeMessage(Wire.HEADER_BYTES + wanted, operation.isUnawaited);
        ledger.gatherSlot(Wire.HEADER_BYTES);
        if (wanted > 0) {
            payload = memory.gather(operation, wanted, maxSges - 1, request.buffers());
            if (payload < wanted && payload < room / MIN_FRAGMENT_DIVISOR + 1) {
                payload = wanted;
                ledger.describeMessage(Wire.HEADER_BYTES + wanted, operation.isUnawaited);
                inSlot = wanted <= SendLedger.SLOT_BYTES - Wire.HEADER_BYTES;
                if (inSlot) {
                    memory.copyToSlot(operation, wanted);
                    ledger.gatherSlot(Wire.HEADER_BYTES + wanted);
                } else {
                    ledger.gatherSlot(Wire.HEADER_BYTES);
                    if (!memory.copy(endpoint, operation, wanted)) {
                        return Obstacle.MEMORY;
                    }
                }
            }
        }
        frames.writeMessageHeader(
                type, operation.remainingBytes, payload < operation.remainingBytes || operation.next != null);
        boolean isDone = ledger.isDoneWhenPosted(inSlot, operation.isUnawaited);
        if (!frames.postMessage(endpoint, isDone ? null : operation)) {
            return Obstacle.SLOT;
        }
        operation.framePosted(payload, isDone);
        return Obstacle.NONE;
    }

    @Override
    boolean tryTake(int type, MemorySegment memory, long at, int payload, int length) {
        if (type != Wire.PACKED) {
            return super.tryTake(type, memory, at, payload, length);
        }
        int[] lengths = inbox.isWithinMessage() ? null : packed.readLengths(memory, at, payload, length);
        if (lengths == null) {
            return false;
        }
        long from = at + (long) length * Wire.PACKED_LENGTH_BYTES;
        for (int i = 0; i < length; i++) {
            if (!taken.tryAdd(memory, from, lengths[i])) {
                return false;
            }
            from += lengths[i];
        }
        return true;
    }

    @Override
    void accept(int type, ByteBuf buffer, int length) {
        if (type == Wire.CONTINUATION) {
            inbox.proceed(buffer);
        } else if (type == Wire.PACKED) {
            inbox.receivedPacked(buffer, length);
        } else if (buffer.readableBytes() == length) {
            inbox.received(buffer);
        } else {
            inbox.begin(buffer, length);
        }
    }

    @Override
    @Nullable String violation(int type, ByteBuf buffer, int payload, int length) {
        if (type == Wire.END) {
            return "it sent END of " + payload + " bytes of " + length + " with framing " + Framing.MESSAGE;
        }
        if (type == Wire.PACKED) {
            return inbox.isWithinMessage() ? WITHIN_ANOTHER : packed.violation(buffer, payload, length);
        }
        if (length < 0 || (type != Wire.RENDEZVOUS && payload > length)) {
            return "it sent " + payload + " bytes of " + Integer.toUnsignedString(length);
        }
        int least = (window.firstBufferBytes() - Wire.HEADER_BYTES) / MIN_FRAGMENT_DIVISOR;
        if (type != Wire.RENDEZVOUS && payload < length && payload < least) {
            return "it sent a fragment of " + payload + " bytes of " + length;
        }
        if (type == Wire.CONTINUATION) {
            return inbox.isWithinMessage() && length == inbox.expectedBytes() && payload > 0
                    ? null
                    : "it continues a message at " + length + " bytes before its end, expected "
                            + (inbox.isWithinMessage() ? String.valueOf(inbox.expectedBytes()) : "none");
        }
        if (inbox.isWithinMessage()) {
            return WITHIN_ANOTHER;
        }
        if (type == Wire.RENDEZVOUS) {
            return advertisementViolation(length);
        }
        return length > handshake.maxInboundBytes() ? tooLong(length) : null;
    }
}
