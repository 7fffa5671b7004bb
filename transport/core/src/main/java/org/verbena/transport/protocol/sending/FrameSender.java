package org.verbena.transport.protocol.sending;

import io.netty.buffer.ByteBuf;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.protocol.Frame;
import org.verbena.transport.protocol.state.ConnectionCounters;
import org.verbena.transport.protocol.state.Work;
import org.verbena.transport.protocol.wire.Credits;
import org.verbena.transport.protocol.wire.HeaderState;
import org.verbena.transport.protocol.wire.Wire;
import org.verbena.transport.spi.Endpoint;

/** Puts a header in front of each frame, with the current state that the peer has to know. */
public final class FrameSender {
    private final Credits credits;
    private final SendLedger ledger;
    private final ConnectionCounters counters;
    private final HeaderState header;
    private final FrameTap tap;
    /** Whether the header that was written last asks for more grants. */
    private boolean asks;

    public FrameSender(
            Credits credits, SendLedger ledger, ConnectionCounters counters, HeaderState header, FrameTap tap) {
        this.credits = credits;
        this.ledger = ledger;
        this.counters = counters;
        this.header = header;
        this.tap = tap;
    }

    /**
     * Writes the header of a frame of the message class.
     *
     * @param moreFollows whether there is something to send behind this frame
     */
    public void writeMessageHeader(int type, int length, boolean moreFollows) {
        writeHeader(type, length, credits.asksWithMessage(moreFollows));
    }

    private void writeHeader(int type, int length, boolean asking) {
        asks = asking;
        ByteBuf memory = ledger.slots();
        int offset = ledger.slotOffset();
        memory.setLong(offset, firstOfHeader(type, asking));
        memory.setLong(offset + 8, secondOfHeader(length));
    }

    private long firstOfHeader(int type, boolean asking) {
        return (long) type << 56
                | header.flags()
                | (asking ? (long) Wire.ASKS << 48 : 0)
                | (long) credits.controlForHeader() << 32
                | Integer.toUnsignedLong(credits.grantForHeader());
    }

    private long secondOfHeader(int length) {
        return (long) header.rendezvousTotal() << 32 | Integer.toUnsignedLong(length);
    }

    /**
     * Gives a frame of the message class to an endpoint that copies it at once: it takes a grant, and is done. The
     * indices of the payload's buffer stay as they are.
     *
     * @param moreFollows whether there is something to send behind this frame
     * @return false if the frame has to be posted
     */
    public boolean tryCopyMessage(
            Endpoint endpoint,
            int type,
            int length,
            ByteBuf payload,
            int index,
            int payloadBytes,
            boolean moreFollows) {
        boolean asking = credits.asksWithMessage(moreFollows);
        Frame frame = null;
        if (tap.isOn()) {
            writeHeader(type, length, asking);
            frame = tap.staged(ledger, Wire.HEADER_BYTES + payloadBytes);
        }
        if (!endpoint.trySend(firstOfHeader(type, asking), secondOfHeader(length), payload, index, payloadBytes)) {
            return false;
        }
        asks = asking;
        ledger.copied();
        sent(frame);
        credits.messageFrameSent();
        return true;
    }

    private void sent(@Nullable Frame frame) {
        counters.frameSent();
        credits.headerSent();
        if (asks) {
            credits.hasAsked();
        }
        header.headerSent();
        tap.sent(frame);
    }

    /** Stages the frame that the request describes, its header written; returns whether it was taken. */
    public boolean post(Endpoint endpoint, @Nullable Work owner) {
        Frame frame = tap.staged(ledger);
        if (!ledger.post(endpoint, owner)) {
            return false;
        }
        sent(frame);
        return true;
    }

    /** Whether the peer accepts no more message frames now. */
    public boolean isOutOfGrants() {
        return credits.available() <= 0;
    }

    /**
     * Posts a frame of the message class, its header written: it takes a grant.
     *
     * @param operation what completes with it; null if nothing does
     */
    public boolean postMessage(Endpoint endpoint, @Nullable Operation operation) {
        boolean posted = post(endpoint, operation);
        if (posted) {
            credits.messageFrameSent();
        }
        return posted;
    }

    /** Posts a frame of the message class that is only a header: it takes a grant. */
    public boolean postMessageHeader(Endpoint endpoint, Operation operation, int type) {
        ledger.describeSend(Wire.HEADER_BYTES, true);
        writeMessageHeader(type, 0, operation.next != null);
        ledger.gatherSlot(Wire.HEADER_BYTES);
        return postMessage(endpoint, operation);
    }

    /**
     * Posts a frame of the control or handshake class that is all in its slot.
     *
     * @param isAwaited whether the end of the connection waits for it, and for what was sent before
     */
    public boolean postHeader(Endpoint endpoint, int type, int length, int payloadBytes, boolean isAwaited) {
        int frameBytes = Wire.HEADER_BYTES + payloadBytes;
        ledger.describeSend(frameBytes, isAwaited);
        writeHeader(type, length, credits.isAskDue(header.isWaiting()));
        ledger.gatherSlot(frameBytes);
        return post(endpoint, null);
    }

    /**
     * Posts a frame of which the first part is in its slot, and more in memory of its own; false if there is none, or
     * it was not taken.
     */
    public boolean postHeader(Endpoint endpoint, int type, int payloadBytes, byte[] more) {
        if (more.length == 0) {
            return postHeader(endpoint, type, 0, payloadBytes, true);
        }
        int frameBytes = Wire.HEADER_BYTES + payloadBytes;
        ledger.describeSend(frameBytes + more.length, true);
        writeHeader(type, 0, false);
        ledger.gatherSlot(frameBytes);
        ByteBuf memory = ledger.stage(endpoint, more.length);
        if (memory == null) {
            return false;
        }
        memory.setBytes(0, more);
        return post(endpoint, null);
    }

    /**
     * Posts a message as it is, without a header.
     *
     * @param operation what completes with it; null if nothing does
     */
    public boolean postRaw(Endpoint endpoint, @Nullable Operation operation) {
        Frame frame = tap.staged(ledger);
        if (!ledger.post(endpoint, operation)) {
            return false;
        }
        counters.frameSent();
        tap.sent(frame);
        return true;
    }
}
