package org.verbena.transport.protocol;

import org.jspecify.annotations.Nullable;
import org.verbena.transport.spi.Endpoint;

/** Sends HELLO or its answer, and opens both directions when both ends have sent theirs. */
final class Greeting {
    private final MessageConnection.Role role;
    private final boolean raw;
    private final Lifecycle life;
    private final Peer peer;
    private final Handshake handshake;
    private final Credits credits;
    private final SendLedger ledger;
    private final ReceiveWindow window;
    private final Inbox inbox;
    private final FrameSender frames;
    private final RendezvousSender sender;

    @SuppressWarnings("NullAway.Init") // set by prepare
    private MessageBuffers buffers;

    /** HELLO, or its answer, has to be sent. */
    private boolean due;

    private FlightEvents.@Nullable Connect event = FlightEvents.beginConnect();

    Greeting(
            MessageConnection.Role role,
            boolean raw,
            Lifecycle life,
            Peer peer,
            Handshake handshake,
            Credits credits,
            SendLedger ledger,
            ReceiveWindow window,
            Inbox inbox,
            FrameSender frames,
            RendezvousSender sender) {
        this.role = role;
        this.raw = raw;
        this.life = life;
        this.peer = peer;
        this.handshake = handshake;
        this.credits = credits;
        this.ledger = ledger;
        this.window = window;
        this.inbox = inbox;
        this.frames = frames;
        this.sender = sender;
    }

    void prepare(MessageBuffers memory) {
        buffers = memory;
    }

    /** Connected: the initiator sends first. */
    void begin() {
        due = !raw && role == MessageConnection.Role.INITIATOR;
    }

    /** Both ends know each other, and this one has sent its part: frames may be sent. */
    boolean isOver() {
        return life.isAgreed() && !due;
    }

    /** Agrees with a peer that has sent its HELLO, or with RAW at once; null if there is nothing to agree on now. */
    @Nullable Negotiated agree(Endpoint endpoint) {
        Wire.Hello hello = handshake.peer();
        if (!life.is(Lifecycle.Phase.HANDSHAKE) || (hello == null && !raw)) {
            return null;
        }
        window.open();
        life.agreed();
        Negotiated agreed;
        if (hello == null) {
            agreed = handshake.agreeRaw(window.bufferBytes());
        } else {
            credits.openOutbound(
                    hello.window(), hello.greatestWindow(), (hello.features() & Wire.FEATURE_ASKS) != 0);
            due = role == MessageConnection.Role.ACCEPTOR;
            if (handshake.isAuthenticating()) {
                endpoint.allowRemoteAccess(true);
            }
            agreed = handshake.agree(endpoint, hello, buffers, sender);
        }
        FlightEvents.endConnect(event, peer, role, agreed, null);
        event = null;
        return agreed;
    }

    /** The connection has ended before it was up. */
    void failed(@Nullable Throwable cause) {
        FlightEvents.endConnect(event, peer, role, null, cause);
    }

    /** Sends HELLO or HELLO_ACK if it is due, with the receives that are posted by now. */
    void post(Endpoint endpoint) {
        if (!due || ledger.free(endpoint) < 1) {
            return;
        }
        if (credits.outstandingGrant() == 0) {
            // Once, even if the frame is refused and has to be sent again.
            credits.openInbound(Math.max(0, window.grantable(inbox.undelivered())));
        }
        int firstGrant = credits.outstandingGrant();
        if (firstGrant < 1) {
            return;
        }
        int index = ledger.slotOffset() + Wire.HEADER_BYTES;
        handshake
                .hello(buffers, window.bufferBytes(), firstGrant, window.greatest())
                .write(ledger.slots(), index);
        byte[] proof = handshake.proof(ledger.slots(), index);
        due = !frames.postHeader(endpoint, handshake.type(), Wire.HELLO_BYTES - Wire.HEADER_BYTES, proof);
    }
}
