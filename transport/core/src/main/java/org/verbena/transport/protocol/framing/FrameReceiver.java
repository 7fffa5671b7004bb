package org.verbena.transport.protocol.framing;

import io.netty.buffer.ByteBuf;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.protocol.handshake.Handshake;
import org.verbena.transport.protocol.receiving.Inbox;
import org.verbena.transport.protocol.receiving.Notice;
import org.verbena.transport.protocol.receiving.ReceiveWindow;
import org.verbena.transport.protocol.rendezvous.RendezvousSender;
import org.verbena.transport.protocol.sending.FrameTap;
import org.verbena.transport.protocol.sending.Operation;
import org.verbena.transport.protocol.state.Lifecycle;
import org.verbena.transport.protocol.wire.Credits;
import org.verbena.transport.protocol.wire.Wire;
import org.verbena.transport.spi.EndpointHandler;

/**
 * Reads what arrived, in a receive or where the endpoint has it, passes it to the parts of the connection, and reports
 * violations.
 */
public final class FrameReceiver {
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.BIG_ENDIAN);

    private final Lifecycle life;
    private final Handshake handshake;
    private final Credits credits;
    private final ReceiveWindow window;
    private final Inbox inbox;
    private final Framer framer;
    private final RendezvousSender sender;
    private final ControlFrames control;
    private final FrameTap tap;
    private final Consumer<Operation> onRead;
    private final Consumer<String> onViolation;

    // The header of the frame that was taken last.
    private long firstTaken;
    private long secondTaken;

    /**
     * Creates one.
     *
     * @param onRead given each message that the peer has read a part of
     * @param onViolation given what is wrong with a frame
     */
    public FrameReceiver(
            Lifecycle life,
            Handshake handshake,
            Credits credits,
            ReceiveWindow window,
            Inbox inbox,
            Framer framer,
            RendezvousSender sender,
            ControlFrames control,
            FrameTap tap,
            Consumer<Operation> onRead,
            Consumer<String> onViolation) {
        this.life = life;
        this.handshake = handshake;
        this.credits = credits;
        this.window = window;
        this.inbox = inbox;
        this.framer = framer;
        this.sender = sender;
        this.control = control;
        this.tap = tap;
        this.onRead = onRead;
        this.onViolation = onViolation;
    }

    /**
     * A frame lies in memory of the endpoint. It is taken from there if it is right, has whole messages, and the first
     * of them is delivered at once. {@link #deliverTaken} follows, or {@link #dropTaken}.
     *
     * @param memory which the peer may change
     * @return false if the frame has to come in a receive; then nothing has changed
     */
    public boolean tryTake(MemorySegment memory, long offset, int lengthBytes) {
        int payload = lengthBytes - Wire.HEADER_BYTES;
        if (payload < 0
                || lengthBytes > window.bufferBytes()
                || !window.isOfOneLength() // whose receives are counted
                || !life.is(Lifecycle.Phase.ACTIVE)
                || tap.isOn()
                || !inbox.isNext()
                || !(framer instanceof HeadedFramer headed)) {
            return false;
        }
        firstTaken = memory.get(LONG, offset);
        secondTaken = memory.get(LONG, offset + Long.BYTES);
        int type = (int) (firstTaken >>> 56);
        return headed.tryTake(type, memory, offset + Wire.HEADER_BYTES, payload, (int) secondTaken);
    }

    /** Delivers what was taken; the length is the same. */
    public void deliverTaken(int lengthBytes) {
        if (!(framer instanceof HeadedFramer headed)) {
            throw new IllegalStateException("nothing was taken");
        }
        String violation = headerReceived(firstTaken, secondTaken);
        if (violation == null) {
            violation = window.messageFrameCame(lengthBytes);
        }
        if (violation == null) {
            headed.taken.deliver();
        } else {
            headed.taken.drop();
            onViolation.accept(violation);
        }
    }

    /** Releases what was taken and is not delivered. */
    public void dropTaken() {
        if (framer instanceof HeadedFramer headed) {
            headed.taken.drop();
        }
    }

    /** A receive was filled, or used up by a write with immediate data; takes the buffer. */
    public void received(ByteBuf buffer, int lengthBytes, int flags, int immediateData) {
        String violation = violationIn(buffer, lengthBytes, flags, immediateData);
        if (violation != null) {
            onViolation.accept(violation);
        }
    }

    private @Nullable String violationIn(ByteBuf buffer, int lengthBytes, int flags, int immediateData) {
        boolean write = (flags & EndpointHandler.REMOTE_WRITE) != 0;
        if (!write && !tap.received(buffer, lengthBytes)) {
            buffer.release();
            return null;
        }
        if (framer instanceof RawFramer raw) {
            return raw.received(buffer, lengthBytes, flags, immediateData, life.isCloseRequested());
        }
        return write ? writtenTo(buffer, lengthBytes, immediateData) : frameReceived(buffer, lengthBytes);
    }

    private @Nullable String writtenTo(ByteBuf buffer, int lengthBytes, int immediateData) {
        window.reuse(buffer);
        if (!life.isAgreed() || life.hasPeerClosed()) {
            return "it wrote with immediate data before HELLO or after CLOSE";
        }
        String violation = window.messageFrameCame(0);
        if (violation == null && !life.isCloseRequested()) {
            inbox.arrived(null, false, Notice.IMMEDIATE, immediateData, lengthBytes);
        }
        return violation;
    }

    private @Nullable String frameReceived(ByteBuf buffer, int lengthBytes) {
        if (lengthBytes < Wire.HEADER_BYTES || lengthBytes > buffer.capacity()) {
            buffer.release();
            return "it sent " + lengthBytes + " bytes, and a header has " + Wire.HEADER_BYTES;
        }
        long first = buffer.getLong(0);
        long second = buffer.getLong(8);
        int type = (int) (first >>> 56);
        if (!life.isAgreed()) {
            String violation = handshake.receive(type, buffer, lengthBytes);
            window.controlCame();
            window.reuse(buffer);
            return violation;
        }
        String violation = headerReceived(first, second);
        if (violation != null) {
            buffer.release();
            return violation;
        }
        if (!Wire.isMessageClass(type)) {
            violation = control.received(type, buffer, lengthBytes);
            window.controlCame();
            window.reuse(buffer);
            return violation;
        }
        violation = window.messageFrameCame(lengthBytes);
        if (violation == null && life.hasPeerClosed()) {
            violation = "it sent " + Wire.name(type) + " after CLOSE";
        }
        boolean closing = life.isCloseRequested();
        if (violation != null || (closing && type != Wire.RENDEZVOUS)) {
            window.reuse(buffer);
            return violation;
        }
        return ((HeadedFramer) framer).received(type, buffer, lengthBytes - Wire.HEADER_BYTES, (int) second, closing);
    }

    private @Nullable String headerReceived(long first, long second) {
        if (((first >>> 48) & Wire.WAITED) != 0) {
            window.peerWaited();
        }
        if (((first >>> 48) & Wire.RECLAIM) != 0) {
            control.grantsWanted();
        }
        if (((first >>> 48) & Wire.ASKS) != 0) {
            credits.peerAsked();
            window.peerAsked();
        }
        String violation = credits.headerReceived((int) first, (int) (first >>> 32) & 0xffff);
        return violation != null ? violation : sender.readByPeer((int) (second >>> 32), onRead);
    }
}
