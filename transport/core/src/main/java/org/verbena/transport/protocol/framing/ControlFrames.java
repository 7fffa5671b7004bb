package org.verbena.transport.protocol.framing;

import io.netty.buffer.ByteBuf;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.protocol.receiving.Inbox;
import org.verbena.transport.protocol.receiving.ReceiveWindow;
import org.verbena.transport.protocol.sending.FrameSender;
import org.verbena.transport.protocol.sending.Outbox;
import org.verbena.transport.protocol.sending.SendLedger;
import org.verbena.transport.protocol.state.ConnectionCounters;
import org.verbena.transport.protocol.state.Lifecycle;
import org.verbena.transport.protocol.wire.Credits;
import org.verbena.transport.protocol.wire.HeaderState;
import org.verbena.transport.protocol.wire.Wire;
import org.verbena.transport.spi.Endpoint;

/**
 * STATE, PING, PONG, CLOSE, RETURN, LONGER and ACK: sends those that are due, most urgent first, and handles the
 * peer's.
 */
public final class ControlFrames {
    private final Lifecycle life;
    private final Credits credits;
    private final SendLedger ledger;
    private final FrameSender frames;
    private final ReceiveWindow window;
    private final Inbox inbox;
    private final HeaderState header;
    private final Outbox outbox;
    private final ConnectionCounters counters;
    private boolean pingDue;
    private boolean pingOut;
    private boolean pingForKeepAlive;
    private long pingNonce;
    private boolean pongDue;
    private long pongNonce;
    /** The answer to the user's ping has not been reported yet. */
    private boolean pongCame;

    private long answeredNonce;
    /** The peer has asked for grants. */
    private boolean returnDue;

    public ControlFrames(
            Lifecycle life,
            Credits credits,
            SendLedger ledger,
            FrameSender frames,
            ReceiveWindow window,
            Inbox inbox,
            HeaderState header,
            Outbox outbox,
            ConnectionCounters counters) {
        this.life = life;
        this.credits = credits;
        this.ledger = ledger;
        this.frames = frames;
        this.window = window;
        this.inbox = inbox;
        this.header = header;
        this.outbox = outbox;
        this.counters = counters;
    }

    /** Whether a ping has to be sent or answered. */
    public boolean isPinging() {
        return pingDue || pingOut;
    }

    /** Sends a ping; no other ping may be outstanding. */
    public void ping(long nonce, boolean forKeepAlive) {
        header.changed();
        pingDue = true;
        pingForKeepAlive = forKeepAlive;
        pingNonce = nonce;
    }

    /** The nonce of the last ping that was answered. */
    public long answeredNonce() {
        return answeredNonce;
    }

    /** Whether the answer to the user's ping has to be reported; resets this. */
    public boolean takePong() {
        boolean came = pongCame;
        pongCame = false;
        return came;
    }

    /** The peer asks for the grants that this end does not need. */
    void grantsWanted() {
        header.changed();
        returnDue = true;
    }

    /** Posts the control frame that is due, or the ACK. What finds no slot of the send queue remains due. */
    public void post(Endpoint endpoint) {
        if (ledger.free(endpoint) < 1 || life.is(Lifecycle.Phase.CLOSED)) {
            return;
        }
        if (credits.canSendControl()) {
            int type = next();
            if (type != 0) {
                post(endpoint, type);
                return;
            }
        }
        if (credits.mustAnswer() && credits.canAnswer()) {
            if (frames.postHeader(endpoint, Wire.ACK, 0, 0, life.isClosing())) {
                credits.answerSent();
                counters.controlFrameSent();
            }
        } else if (credits.isQuiet() && !header.isWaiting() && !returnDue) {
            header.allSaid();
        }
    }

    private int next() {
        if (pongDue) {
            return Wire.PONG;
        }
        if (life.isCloseSent()) {
            return 0;
        }
        if (isCloseDue()) {
            return Wire.CLOSE;
        }
        if (pingDue) {
            return Wire.PING;
        }
        if (returnDue && outbox.isNoneWaiting()) { // the peer waits for an answer, or a message
            if (credits.returnable() > 0) {
                return Wire.RETURN;
            }
            returnDue = false;
        }
        if (window.isGrowthUnannounced()) {
            return Wire.LONGER;
        }
        return credits.grantDue() || credits.isAskDue(header.isWaiting()) || header.isDue() ? Wire.STATE : 0;
    }

    private boolean isCloseDue() {
        return life.hasPeerClosed() || (life.isCloseRequested() && outbox.isNoneWaiting() && outbox.unfinished() == 0);
    }

    private void post(Endpoint endpoint, int type) {
        int payload = 0;
        if (type == Wire.PING || type == Wire.PONG) {
            long nonce = type == Wire.PING ? pingNonce : pongNonce;
            ledger.slots().setLong(ledger.slotOffset() + Wire.HEADER_BYTES, nonce);
            payload = Wire.NONCE_BYTES;
        }
        if (type == Wire.LONGER) {
            ledger.slots().setInt(ledger.slotOffset() + Wire.HEADER_BYTES, window.longerFrom());
            payload = Wire.FRAME_NUMBER_BYTES;
        }
        int returned = type == Wire.RETURN ? credits.returnable() : 0;
        int length = type == Wire.LONGER ? window.bufferBytes() : returned;
        // After CLOSE nothing more is sent; the connection waits for the last send to complete.
        if (!frames.postHeader(endpoint, type, length, payload, life.isClosing())) {
            return;
        }
        credits.controlFrameSent();
        counters.controlFrameSent();
        switch (type) {
            case Wire.PONG -> pongDue = false;
            case Wire.RETURN -> {
                credits.giveBack(returned);
                returnDue = false;
            }
            case Wire.PING -> {
                pingDue = false;
                pingOut = true;
            }
            case Wire.CLOSE -> life.closeSent();
            case Wire.LONGER -> window.growthAnnounced();
            default -> {
                // STATE: the header is all of it.
            }
        }
    }

    /** Handles one of the peer's control frames, whose header has been read; returns the violation, or null. */
    @Nullable String received(int type, ByteBuf buffer, int lengthBytes) {
        header.changed();
        if (type == Wire.ACK) {
            credits.answerReceived();
            return null;
        }
        int payload = switch (type) {
            case Wire.PING, Wire.PONG -> Wire.NONCE_BYTES;
            case Wire.LONGER -> Wire.FRAME_NUMBER_BYTES;
            case Wire.STATE, Wire.CLOSE, Wire.RETURN -> 0;
            default -> Integer.MAX_VALUE - Wire.HEADER_BYTES;
        };
        if (lengthBytes < Wire.HEADER_BYTES + payload) {
            return "it sent " + Wire.name(type) + " of " + lengthBytes + " bytes";
        }
        String violation = credits.controlFrameReceived();
        if (violation != null) {
            return violation;
        }
        switch (type) {
            case Wire.PING -> {
                pongDue = true;
                pongNonce = buffer.getLong(Wire.HEADER_BYTES);
            }
            case Wire.PONG -> {
                if (!pingOut || buffer.getLong(Wire.HEADER_BYTES) != pingNonce) {
                    return "it answered a ping that was not sent";
                }
                pingOut = false;
                answeredNonce = pingNonce;
                pongCame = !pingForKeepAlive;
            }
            case Wire.RETURN -> {
                return window.grantsReturned((int) buffer.getLong(8));
            }
            case Wire.LONGER -> {
                return credits.peerTakesLonger((int) buffer.getLong(8), buffer.getInt(Wire.HEADER_BYTES));
            }
            case Wire.CLOSE -> {
                if (life.hasPeerClosed()) {
                    return "it sent CLOSE twice";
                }
                if (inbox.isWithinMessage() && !life.isCloseRequested()) {
                    return "it sent CLOSE within a message";
                }
                life.peerClosed();
            }
            default -> {
                // STATE: the header was all of it.
            }
        }
        return null;
    }
}
