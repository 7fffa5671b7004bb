package org.verbena.transport.protocol;

import io.netty.buffer.ByteBuf;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointCapabilities;
import org.verbena.transport.spi.WorkRequest;

/** Messages keep their boundaries: one frame each, or several fragments, or an advertisement. */
final class MessageFramer extends Framer {
    /** A fragment that is not the last fills at least this part of the peer's receive buffer, so that it cannot be made to hold many for little. */
    private static final int MIN_FRAGMENT_DIVISOR = 4;

    private final Credits credits;
    private final Handshake handshake;
    private final RendezvousSender sender;
    private final RendezvousReceiver receiver;
    private int maxSges;

    MessageFramer(
            SendLedger ledger,
            SendMemory memory,
            FrameSender frames,
            ConnectionCounters counters,
            ReceiveWindow window,
            Inbox inbox,
            Credits credits,
            Handshake handshake,
            RendezvousSender sender,
            RendezvousReceiver receiver) {
        super(ledger, memory, frames, counters, window, inbox);
        this.credits = credits;
        this.handshake = handshake;
        this.sender = sender;
        this.receiver = receiver;
    }

    @Override
    void prepare(EndpointCapabilities capabilities) {
        maxSges = capabilities.maxSges();
    }

    @Override
    boolean hasBegun(Operation operation) {
        return operation.remainingBytes < operation.totalBytes;
    }

    @Override
    Obstacle post(Endpoint endpoint, Operation operation) {
        if (!hasBegun(operation) && operation.totalBytes > handshake.maxOutboundBytes()) {
            return refuse(operation, handshake.maxOutboundBytes());
        }
        if (credits.available() <= 0) {
            return Obstacle.CREDIT;
        }
        if (sender.wants(operation)) {
            if (sender.isFull()) {
                return Obstacle.SLOT;
            }
            if (sender.gather(operation, operation.totalBytes, handshake.peerPayloadBytes())) {
                return sender.post(endpoint, operation, operation.totalBytes);
            }
        }
        return postFragment(endpoint, operation);
    }

    private Obstacle postFragment(Endpoint endpoint, Operation operation) {
        int type = hasBegun(operation) ? Wire.CONTINUATION : Wire.MESSAGE;
        int room = handshake.peerPayloadBytes();
        int wanted = Math.min(operation.remainingBytes, room);
        int payload = wanted;
        int flags = ledger.inlineFlag(Wire.HEADER_BYTES + wanted);
        WorkRequest request = ledger.request();
        ByteBuf copy = null;
        request.asSend(ledger.nextId(), flags);
        ledger.gatherSlot(Wire.HEADER_BYTES);
        if (wanted > 0) {
            payload = memory.gather(operation, wanted, maxSges - 1, request.buffers());
            if (payload < wanted && payload < room / MIN_FRAGMENT_DIVISOR + 1) {
                payload = wanted;
                request.asSend(ledger.nextId(), flags);
                if (wanted <= SendLedger.SLOT_BYTES - Wire.HEADER_BYTES) {
                    SendMemory.messageOf(operation)
                            .getBytes(operation.index, ledger.slots(), ledger.slotOffset() + Wire.HEADER_BYTES, wanted);
                    ledger.gatherSlot(Wire.HEADER_BYTES + wanted);
                    counters.copied(wanted);
                } else {
                    ledger.gatherSlot(Wire.HEADER_BYTES);
                    copy = memory.copy(endpoint, operation, wanted);
                    if (copy == null) {
                        return Obstacle.MEMORY;
                    }
                }
            }
        }
        frames.writeHeader(type, operation.remainingBytes);
        if (!frames.post(endpoint, operation, copy)) {
            return Obstacle.SLOT;
        }
        credits.messageFrameSent();
        operation.framePosted(payload);
        return Obstacle.NONE;
    }

    @Override
    @Nullable String received(int type, ByteBuf buffer, int payload, int length, boolean closing) {
        String violation = violation(type, payload, length);
        if (violation != null) {
            buffer.release();
        } else if (type == Wire.RENDEZVOUS) {
            violation = receiver.advertised(buffer, payload, length, closing);
            window.reuse(buffer);
        } else {
            buffer.setIndex(Wire.HEADER_BYTES, Wire.HEADER_BYTES + payload);
            if (type == Wire.CONTINUATION) {
                inbox.proceed(buffer);
            } else if (payload == length) {
                inbox.received(buffer);
            } else {
                inbox.begin(buffer, length);
            }
        }
        return violation;
    }

    private @Nullable String violation(int type, int payload, int length) {
        if (type == Wire.END) {
            return "it sent END of " + payload + " bytes of " + length + " with framing " + Framing.MESSAGE;
        }
        if (length < 0 || (type != Wire.RENDEZVOUS && payload > length)) {
            return "it sent " + payload + " bytes of " + Integer.toUnsignedString(length);
        }
        int least = (window.bufferBytes() - Wire.HEADER_BYTES) / MIN_FRAGMENT_DIVISOR;
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
            return "it began a message within another";
        }
        if (length > handshake.maxInboundBytes()) {
            return "it sent a message of " + length + " bytes, over the limit of " + handshake.maxInboundBytes();
        }
        if (type == Wire.RENDEZVOUS && !handshake.hasFeature(Wire.FEATURE_READS)) {
            return "it advertised more messages than it may";
        }
        return null;
    }
}
