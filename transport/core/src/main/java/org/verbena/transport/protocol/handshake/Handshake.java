package org.verbena.transport.protocol.handshake;

import io.netty.buffer.ByteBuf;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.EndpointCapabilities;
import org.verbena.transport.Framing;
import org.verbena.transport.PreSharedKeys;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.Negotiated;
import org.verbena.transport.protocol.Role;
import org.verbena.transport.protocol.memory.MessageBuffers;
import org.verbena.transport.protocol.receiving.Inbox;
import org.verbena.transport.protocol.receiving.ReceiveWindow;
import org.verbena.transport.protocol.rendezvous.RendezvousSender;
import org.verbena.transport.protocol.sending.FrameSender;
import org.verbena.transport.protocol.sending.SendLedger;
import org.verbena.transport.protocol.state.FlightEvents;
import org.verbena.transport.protocol.state.Lifecycle;
import org.verbena.transport.protocol.state.Peer;
import org.verbena.transport.protocol.wire.Credits;
import org.verbena.transport.protocol.wire.Wire;
import org.verbena.transport.spi.Endpoint;

/**
 * HELLO and its answer: sends this end's, checks the peer's, and opens both directions when both ends know each other.
 */
public final class Handshake {
    private static final byte[] NOTHING = {};

    private final Role role;
    private final MessageOptions options;
    private final boolean raw;
    private final Lifecycle life;
    private final Peer peer;
    private final Credits credits;
    private final SendLedger ledger;
    private final ReceiveWindow window;
    private final Inbox inbox;
    private final FrameSender frames;
    private final RendezvousSender sender;

    @SuppressWarnings("NullAway.Init") // set by prepare
    private MessageBuffers buffers;

    /** Frames with several messages are agreed on, if the peer takes them too. */
    private boolean packs;

    private int features;
    private int programFeatures;
    /** The features of both ends, once they have agreed; with RAW, where the peer does not say, this end's. */
    private int commonFeatures;

    private Wire.@Nullable Hello peerHello;
    private @Nullable Negotiated negotiated;
    private int maxOutboundBytes = Integer.MAX_VALUE;
    /** The longest message that the peer was promised; 0 before HELLO. */
    private int maxInboundBytes;
    /** That is a part of the budget. */
    private boolean promised;

    /** Until both ends have proved their key; null without one. */
    private @Nullable Authentication authentication;

    private boolean refused;

    /** This end's part is due. */
    private boolean due;

    private FlightEvents.@Nullable Connect event = FlightEvents.beginConnect();

    public Handshake(
            Role role,
            MessageOptions options,
            Lifecycle life,
            Peer peer,
            Credits credits,
            SendLedger ledger,
            ReceiveWindow window,
            Inbox inbox,
            FrameSender frames,
            RendezvousSender sender) {
        this.role = role;
        this.options = options;
        raw = options.framing() == Framing.RAW;
        packs = options.framing() == Framing.MESSAGE;
        this.life = life;
        this.peer = peer;
        this.credits = credits;
        this.ledger = ledger;
        this.window = window;
        this.inbox = inbox;
        this.frames = frames;
        this.sender = sender;
    }

    /** Makes both ends prove a key before anything else. Before {@link #privateData()}. */
    public void authenticate(PreSharedKeys keys) {
        if (raw) {
            throw new IllegalArgumentException(
                    "framing RAW has no handshake in which a pre-shared key could be proved: use MESSAGE or STREAM");
        }
        int bytes = options.receiveBufferBytes();
        if (bytes != MessageOptions.DEVICE_DEFAULT && bytes < Authentication.LEAST_RECEIVE_BYTES) {
            throw new IllegalArgumentException("receiveBufferBytes " + bytes
                    + " is too small for a handshake with a pre-shared key: "
                    + Authentication.LEAST_RECEIVE_BYTES + " or more");
        }
        authentication = new Authentication(role, keys);
    }

    /** This end behaves like one that knows no frames with several messages. Before it is prepared. */
    public void packNothing() {
        packs = false;
    }

    /** What this end's program announces to the peer's; 0 to 255. Before HELLO. */
    public void announce(int program) {
        programFeatures = program;
    }

    /** What the peer's program announced to this one; 0 before HELLO, and with RAW. */
    public int peerAnnounced() {
        Wire.Hello hello = peerHello;
        return hello == null ? 0 : hello.features() >>> Wire.PROGRAM_FEATURES_SHIFT;
    }

    /** Whether the peer still has to prove its key. */
    public boolean isAuthenticating() {
        return authentication != null;
    }

    /** Whether the peer's proof was missing or wrong. */
    public boolean hasRefused() {
        return refused;
    }

    /** The private data of this end's connect request or acceptance. */
    public byte[] privateData() {
        byte[] preamble = Wire.preamble(options.framing());
        return authentication == null ? preamble : authentication.privateData(preamble);
    }

    /**
     * Takes the private data of the peer's acceptance. Returns the violation if this end authenticates and the peer
     * does not, or null.
     */
    public @Nullable String takeAcceptance(byte[] privateData) {
        return authentication == null ? null : authentication.takeAcceptance(privateData);
    }

    /** Computes the proof that follows a written HELLO. */
    private byte[] proof(ByteBuf hello, int index) {
        return authentication == null ? NOTHING : authentication.prove(hello, index);
    }

    public void prepare(MessageBuffers memory) {
        buffers = memory;
    }

    /** The capabilities of this end's device are known. */
    public void prepare(EndpointCapabilities capabilities) {
        boolean reads = capabilities.readDepth() > 0 && options.rendezvousThresholdBytes() < Integer.MAX_VALUE;
        features = (reads ? Wire.FEATURE_READS : 0)
                | (capabilities.immediateData() ? Wire.FEATURE_IMMEDIATE : 0)
                | (capabilities.atomics() ? Wire.FEATURE_ATOMICS : 0)
                | Wire.FEATURE_ASKS
                | Wire.FEATURE_LONGER
                | (packs ? Wire.FEATURE_PACKS : 0);
    }

    /**
     * This end's part of the handshake. It promises messages that fit into the budget; a stream is delivered as it
     * arrives, so its limit, which is for stretches by rendezvous, needs no part of the budget.
     */
    private Wire.Hello hello(int firstGrant) {
        promise();
        return new Wire.Hello.Builder()
                .framing(options.framing().wireValue())
                .features(features | programFeatures << Wire.PROGRAM_FEATURES_SHIFT)
                .receiveBufferBytes(window.firstBufferBytes())
                .window(firstGrant, window.greatest())
                .maxMessageBytes(maxInboundBytes)
                .maxRendezvous(options.maxRendezvous())
                .greatestReceiveBytes(window.greatestBufferBytes())
                .build();
    }

    private void promise() {
        if (maxInboundBytes == 0) {
            promised = options.framing() != Framing.STREAM;
            maxInboundBytes = promised ? buffers.promise(options.maxMessageBytes()) : options.maxMessageBytes();
        }
    }

    /** Nothing comes any more that was promised memory. */
    public void release() {
        if (promised) {
            promised = false;
            buffers.withdraw(maxInboundBytes);
        }
    }

    /** Connected: the initiator sends first. */
    public void begin() {
        due = !raw && role == Role.INITIATOR;
    }

    /** Both ends know each other, and this one has sent its part: frames may be sent. */
    public boolean isOver() {
        return life.isAgreed() && !due;
    }

    /** Agrees with a peer that has sent its HELLO, or with RAW at once; null if there is nothing to agree on now. */
    public @Nullable Negotiated agree(Endpoint endpoint) {
        Wire.Hello hello = peerHello;
        if (!life.is(Lifecycle.Phase.HANDSHAKE) || (hello == null && !raw)) {
            return null;
        }
        window.open(hello != null && (hello.features() & Wire.FEATURE_LONGER) != 0);
        life.agreed();
        commonFeatures = hello == null ? features : features & hello.features();
        Negotiated agreed;
        if (hello == null) {
            agreed = agreeRaw(window.bufferBytes());
        } else {
            credits.openOutbound(hello.window(), hello.greatestWindow(), (hello.features() & Wire.FEATURE_ASKS) != 0);
            due = role == Role.ACCEPTOR;
            if (isAuthenticating()) {
                endpoint.allowRemoteAccess(true);
            }
            agreed = agreeWith(endpoint, hello);
        }
        FlightEvents.endConnect(event, peer, role, agreed, null);
        event = null;
        return agreed;
    }

    /** The connection has ended before it was up. */
    public void failed(@Nullable Throwable cause) {
        FlightEvents.endConnect(event, peer, role, null, cause);
    }

    /** Sends HELLO or HELLO_ACK if it is due, with the receives that are posted by now. */
    public void post(Endpoint endpoint) {
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
        hello(firstGrant).write(ledger.slots(), index);
        byte[] proof = proof(ledger.slots(), index);
        int type = role == Role.ACCEPTOR ? Wire.HELLO_ACK : Wire.HELLO;
        due = !frames.postHeader(endpoint, type, Wire.HELLO_BYTES - Wire.HEADER_BYTES, proof);
    }

    /** Takes the peer's first frame; returns the violation, or null. */
    public @Nullable String receive(int type, ByteBuf frame, int lengthBytes) {
        int expected = role == Role.ACCEPTOR ? Wire.HELLO : Wire.HELLO_ACK;
        if (type != expected || lengthBytes < Wire.HELLO_BYTES || peerHello != null) {
            return "it began with " + Wire.name(type) + " of " + lengthBytes + " bytes instead of "
                    + Wire.name(expected);
        }
        Wire.Hello hello = Wire.Hello.read(frame, Wire.HEADER_BYTES);
        if (hello == null) {
            return "its HELLO has no magic";
        }
        String violation = hello.violation();
        if (violation != null) {
            return "its HELLO is invalid: " + violation;
        }
        if (hello.framing() != options.framing().wireValue()) {
            return "it uses framing " + Wire.framingName(hello.framing()) + " and this end " + options.framing();
        }
        if (hello.leastVersion() > Wire.VERSION || hello.greatestVersion() < Wire.VERSION) {
            return "it speaks versions " + hello.leastVersion() + " to " + hello.greatestVersion() + " and this end "
                    + Wire.VERSION;
        }
        if (programFeatures != 0 && hello.features() >>> Wire.PROGRAM_FEATURES_SHIFT == 0) {
            return "its program announces nothing, and this end's does: an RdmaClient and an RdmaServer understand each"
                    + " other, and a plain channel a plain channel";
        }
        String refusal = authentication == null ? null : authentication.refusal(frame, lengthBytes);
        if (refusal != null) {
            refused = true;
            return refusal;
        }
        peerHello = hello;
        return null;
    }

    /** Agrees on the parameters, once both ends are known. */
    private Negotiated agreeWith(Endpoint endpoint, Wire.Hello hello) {
        promise();
        credits.openFrames(hello.receiveBufferBytes(), hello.longestFrameBytes());
        maxOutboundBytes = hello.maxMessageBytes();
        int threshold = options.rendezvousThresholdBytes() == MessageOptions.DEVICE_DEFAULT
                ? endpoint.rendezvousBytes(hello.longestFrameBytes())
                : options.rendezvousThresholdBytes();
        int maxRendezvous = Math.min(options.maxRendezvous(), hello.maxRendezvous());
        boolean rendezvous =
                (hello.features() & Wire.FEATURE_READS) != 0 && maxRendezvous > 0 && threshold < Integer.MAX_VALUE;
        sender.agree(threshold, rendezvous ? maxRendezvous : 0);
        Negotiated agreed = new Negotiated(
                Wire.VERSION,
                options.framing(),
                hello.longestFrameBytes(),
                hello.window(),
                maxOutboundBytes,
                maxInboundBytes,
                rendezvous);
        negotiated = agreed;
        return agreed;
    }

    /** The parameters of framing RAW, which agrees on nothing. */
    private Negotiated agreeRaw(int receiveBytes) {
        Negotiated agreed = new Negotiated(
                0, Framing.RAW, Integer.MAX_VALUE, Integer.MAX_VALUE, Integer.MAX_VALUE, receiveBytes, false);
        negotiated = agreed;
        return agreed;
    }

    public @Nullable Negotiated negotiated() {
        return negotiated;
    }

    public boolean hasFeature(int feature) {
        return (features & feature) != 0;
    }

    /** Whether both ends have a feature; none before they have agreed. */
    public boolean haveFeature(int feature) {
        return (commonFeatures & feature) != 0;
    }

    /** How many bytes of a message fit into the next frame. */
    public int peerPayloadBytes() {
        return Math.max(0, credits.frameBytes() - Wire.HEADER_BYTES);
    }

    /** How many will once the peer's receives are as long as they get; 0 before both ends have agreed. */
    public int longestPayloadBytes() {
        return Math.max(0, credits.longestFrameBytes() - Wire.HEADER_BYTES);
    }

    public int maxOutboundBytes() {
        return maxOutboundBytes;
    }

    public int maxInboundBytes() {
        return maxInboundBytes;
    }
}
