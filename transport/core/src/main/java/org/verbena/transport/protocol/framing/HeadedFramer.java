package org.verbena.transport.protocol.framing;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.EndpointCapabilities;
import org.verbena.transport.protocol.handshake.Handshake;
import org.verbena.transport.protocol.receiving.CopiedMessages;
import org.verbena.transport.protocol.receiving.Inbox;
import org.verbena.transport.protocol.receiving.ReceiveWindow;
import org.verbena.transport.protocol.rendezvous.RendezvousReceiver;
import org.verbena.transport.protocol.rendezvous.RendezvousSender;
import org.verbena.transport.protocol.sending.FrameSender;
import org.verbena.transport.protocol.sending.Operation;
import org.verbena.transport.protocol.sending.SendLedger;
import org.verbena.transport.protocol.sending.SendMemory;
import org.verbena.transport.protocol.wire.Wire;
import org.verbena.transport.spi.Endpoint;

/** Frames begin with a header, and what is large may be advertised instead of sent. */
abstract sealed class HeadedFramer extends Framer permits MessageFramer, StreamFramer {
    /**
     * A longer message is given to the endpoint as it is, for one that need not copy it: where one must, a copy costs
     * more than a work request then.
     */
    private static final int MOST_COPIED_BYTES = 4096;

    final Handshake handshake;
    final RendezvousSender sender;
    private final RendezvousReceiver receiver;
    int maxSges;

    /** The messages of the frame that was taken last. */
    final CopiedMessages taken;

    HeadedFramer(
            SendLedger ledger,
            SendMemory memory,
            FrameSender frames,
            ReceiveWindow window,
            Inbox inbox,
            Handshake handshake,
            RendezvousSender sender,
            RendezvousReceiver receiver) {
        super(ledger, memory, frames, window, inbox);
        this.handshake = handshake;
        this.sender = sender;
        this.receiver = receiver;
        taken = new CopiedMessages(inbox);
    }

    @Override
    public final void prepare(EndpointCapabilities capabilities) {
        maxSges = capabilities.maxSges();
    }

    /** Gives all of a message to an endpoint that copies it at once; false if it has to be posted. */
    final boolean tryCopy(Endpoint endpoint, Operation operation, boolean moreFollows) {
        int bytes = operation.totalBytes;
        if (bytes > MOST_COPIED_BYTES
                || bytes > operation.remainingBytes
                || bytes > handshake.peerPayloadBytes()
                || !frames.tryCopyMessage(
                        endpoint,
                        Wire.MESSAGE,
                        bytes,
                        SendMemory.messageOf(operation),
                        operation.index,
                        bytes,
                        moreFollows)) {
            return false;
        }
        memory.countCopy(operation, bytes, maxSges - 1);
        operation.framePosted(bytes, true);
        return true;
    }

    /**
     * A frame of the message class came.
     *
     * @param type of the frame
     * @param buffer the receive; taken
     * @param payload bytes behind the header
     * @param length what the header says
     * @param closing whether this end is closing: only what was advertised is taken
     * @return the violation, or null
     */
    final @Nullable String received(int type, ByteBuf buffer, int payload, int length, boolean closing) {
        String violation = violation(type, buffer, payload, length);
        if (violation != null) {
            buffer.release();
        } else if (type == Wire.RENDEZVOUS) {
            violation = receiver.advertised(buffer, payload, length, closing);
            window.reuse(buffer);
        } else {
            buffer.setIndex(Wire.HEADER_BYTES, Wire.HEADER_BYTES + payload);
            accept(type, buffer, length);
        }
        return violation;
    }

    /**
     * Takes a frame of the message class from where it lies, if it is right and has whole messages, and there is memory
     * for them.
     *
     * @param type of the frame
     * @param memory which the peer may change
     * @param at where its payload begins
     * @param payload bytes of that
     * @param length what the header says
     * @return false if it has to come in a receive, where what is wrong with it is found; then nothing has changed
     */
    boolean tryTake(int type, MemorySegment memory, long at, int payload, int length) {
        if (type != Wire.MESSAGE
                || payload != length
                || violation(type, Unpooled.EMPTY_BUFFER, payload, length) != null) { // of which only PACKED reads it
            return false;
        }
        return taken.tryAdd(memory, at, payload);
    }

    /** What is wrong with a frame, which is in the buffer from index 0 on, or null. */
    abstract @Nullable String violation(int type, ByteBuf buffer, int payload, int length);

    /** Takes a valid frame with bytes of messages, or their end; the buffer is from the payload on. */
    abstract void accept(int type, ByteBuf buffer, int length);

    /** The violation in an advertisement, as far as it does not depend on the framing, or null. */
    final @Nullable String advertisementViolation(int length) {
        if (!handshake.hasFeature(Wire.FEATURE_READS)) {
            return "it advertised more messages than it may";
        }
        return length >= 0 && length <= handshake.maxInboundBytes() ? null : tooLong(length);
    }

    final String tooLong(int length) {
        return "it sent a message of " + Integer.toUnsignedString(length) + " bytes, over the limit of "
                + handshake.maxInboundBytes();
    }
}
