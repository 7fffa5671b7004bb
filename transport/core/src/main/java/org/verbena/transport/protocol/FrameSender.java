package org.verbena.transport.protocol;

import io.netty.buffer.ByteBuf;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.spi.Endpoint;

/** Puts a header in front of what goes out, with all that the peer is to know by then. */
final class FrameSender {
    private final Credits credits;
    private final SendLedger ledger;
    private final ConnectionCounters counters;
    private final ReceiveWindow window;
    private final RendezvousReceiver rendezvous;
    private final Consumer<Throwable> onThrown;
    private Frame.@Nullable Listener listener;
    /** For want of grants, since the last frame. */
    private boolean waited;

    FrameSender(
            Credits credits,
            SendLedger ledger,
            ConnectionCounters counters,
            ReceiveWindow window,
            RendezvousReceiver rendezvous,
            Consumer<Throwable> onThrown) {
        this.credits = credits;
        this.ledger = ledger;
        this.counters = counters;
        this.window = window;
        this.rendezvous = rendezvous;
        this.onThrown = onThrown;
    }

    void setListener(Frame.@Nullable Listener value) {
        listener = value;
    }

    Frame.@Nullable Listener listener() {
        return listener;
    }

    /** Something had to wait for grants: the next header says so. */
    void waited() {
        waited = true;
    }

    void writeHeader(int type, int length) {
        ByteBuf memory = ledger.slots();
        int offset = ledger.slotOffset();
        memory.setLong(
                offset,
                (long) type << 56
                        | (waited ? (long) Wire.WAITED << 48 : 0)
                        | (window.isReclaimDue() ? (long) Wire.RECLAIM << 48 : 0)
                        | (long) credits.controlForHeader() << 32
                        | Integer.toUnsignedLong(credits.grantForHeader()));
        memory.setLong(offset + 8, (long) rendezvous.done() << 32 | Integer.toUnsignedLong(length));
    }

    /** Stages the frame that the request describes, its header written; returns whether it was taken. */
    boolean post(Endpoint endpoint, @Nullable Work owner, @Nullable ByteBuf copy) {
        Frame frame = listener == null
                ? null
                : Frame.read(ledger.slots(), ledger.slotOffset(), (int)
                        ledger.request().buffers().totalBytes());
        if (!ledger.post(endpoint, owner, copy)) {
            return false;
        }
        counters.frameSent();
        credits.told();
        waited = false;
        window.reclaimTold();
        rendezvous.told();
        if (frame != null) {
            tell(frame);
        }
        return true;
    }

    /** Posts a frame that is all in its slot. */
    boolean postHeader(Endpoint endpoint, @Nullable Work owner, int type, int length, int payloadBytes) {
        int frameBytes = Wire.HEADER_BYTES + payloadBytes;
        ledger.request().asSend(ledger.nextId(), ledger.inlineFlag(frameBytes));
        writeHeader(type, length);
        ledger.gatherSlot(frameBytes);
        return post(endpoint, owner, null);
    }

    /** Posts a frame of which the first part is in its slot, and more in memory of its own; false if there is none, or it was not taken. */
    boolean postHeader(Endpoint endpoint, int type, int payloadBytes, byte[] more) {
        if (more.length == 0) {
            return postHeader(endpoint, null, type, 0, payloadBytes);
        }
        int frameBytes = Wire.HEADER_BYTES + payloadBytes;
        ledger.request().asSend(ledger.nextId(), ledger.inlineFlag(frameBytes + more.length));
        writeHeader(type, 0);
        ledger.gatherSlot(frameBytes);
        ByteBuf memory = ledger.stage(endpoint, more.length);
        if (memory == null) {
            return false;
        }
        memory.setBytes(0, more);
        return post(endpoint, null, memory);
    }

    /** A message went out as it is, without a header. */
    void sentRaw(int bytes) {
        counters.frameSent();
        if (listener != null) {
            tell(Frame.raw(bytes));
        }
    }

    /** What the listener throws ends the connection, but the frame is with the device: its sender goes on as if nothing were. */
    private void tell(Frame frame) {
        Frame.Listener told = listener;
        if (told != null) {
            try {
                told.onFrameSent(frame);
            } catch (Throwable e) {
                onThrown.accept(e);
            }
        }
    }
}
