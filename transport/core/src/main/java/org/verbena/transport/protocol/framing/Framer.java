package org.verbena.transport.protocol.framing;

import org.verbena.transport.EndpointCapabilities;
import org.verbena.transport.MessageTooLargeException;
import org.verbena.transport.protocol.receiving.Inbox;
import org.verbena.transport.protocol.receiving.ReceiveWindow;
import org.verbena.transport.protocol.sending.FrameSender;
import org.verbena.transport.protocol.sending.Obstacle;
import org.verbena.transport.protocol.sending.Operation;
import org.verbena.transport.protocol.sending.SendLedger;
import org.verbena.transport.protocol.sending.SendMemory;
import org.verbena.transport.spi.Endpoint;

/** Turns messages into frames and frames into messages: the part in which the framings differ. */
public abstract sealed class Framer permits HeadedFramer, RawFramer {
    final SendLedger ledger;
    final SendMemory memory;
    final FrameSender frames;
    final ReceiveWindow window;
    final Inbox inbox;

    Framer(SendLedger ledger, SendMemory memory, FrameSender frames, ReceiveWindow window, Inbox inbox) {
        this.ledger = ledger;
        this.memory = memory;
        this.frames = frames;
        this.window = window;
        this.inbox = inbox;
    }

    /** The endpoint's capabilities are known. */
    public abstract void prepare(EndpointCapabilities capabilities);

    /** Posts the next frame of the first message that waits; says why not. */
    public abstract Obstacle post(Endpoint endpoint, Operation operation);

    /** Whether a message that the device refuses ends the connection: a part of it may have gone. */
    public abstract boolean hasBegun(Operation operation);

    public static MessageTooLargeException tooLarge(Operation operation, long limit) {
        return new MessageTooLargeException(
                "a message of " + operation.totalBytes + " bytes is over the peer's limit of " + limit
                        + ": send it in parts, or raise MAX_MESSAGE_BYTES at the peer, and the limit of its receive"
                        + " buffers if they cannot hold it",
                operation.totalBytes,
                limit);
    }

    static Obstacle refuse(Operation operation, long limit) {
        operation.failure = tooLarge(operation, limit);
        operation.posted = true;
        return Obstacle.NONE;
    }
}
