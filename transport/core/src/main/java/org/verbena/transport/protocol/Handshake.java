package org.verbena.transport.protocol;

import org.verbena.transport.Framing;
import org.verbena.transport.PreSharedKeys;
import io.netty.buffer.ByteBuf;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.EndpointCapabilities;

/** HELLO and its answer, and what follows from them. Pure: it sends nothing. */
final class Handshake {
    private static final byte[] NOTHING = {};

    private final MessageConnection.Role role;
    private final MessageOptions options;
    private int features;
    private int programFeatures;
    private Wire.@Nullable Hello peer;
    private @Nullable Negotiated negotiated;
    private int peerPayloadBytes;
    private int maxOutboundBytes = Integer.MAX_VALUE;
    /** The longest message that the peer was promised; 0 before HELLO. */
    private int maxInboundBytes;

    /** Until both ends have proved their key; null without one. */
    private @Nullable Authentication authentication;

    private boolean refused;

    Handshake(MessageConnection.Role role, MessageOptions options) {
        this.role = role;
        this.options = options;
    }

    /** Makes both ends prove a key before anything else. Before {@link #privateData()}. */
    void authenticate(PreSharedKeys keys) {
        if (options.framing() == Framing.RAW) {
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

    /** What this end's program tells the peer's; 0 to 255. Before HELLO. */
    void announce(int program) {
        programFeatures = program;
    }

    /** What the peer's program tells this one; 0 before HELLO, and with RAW. */
    int peerAnnounced() {
        Wire.Hello hello = peer;
        return hello == null ? 0 : hello.features() >>> Wire.PROGRAM_FEATURES_SHIFT;
    }

    /** Whether the peer still has to prove its key. */
    boolean isAuthenticating() {
        return authentication != null;
    }

    /** Whether the peer's proof was missing or wrong. */
    boolean hasRefused() {
        return refused;
    }

    /** The private data of this end's connect request or acceptance. */
    byte[] privateData() {
        byte[] preamble = Wire.preamble(options.framing());
        return authentication == null ? preamble : authentication.privateData(preamble);
    }

    /**
     * Takes the private data of the peer's acceptance. Returns the violation if this end authenticates and the peer
     * does not, or null.
     */
    @Nullable String takeAcceptance(byte[] privateData) {
        return authentication == null ? null : authentication.takeAcceptance(privateData);
    }

    /** Computes the proof that follows a written HELLO. */
    byte[] proof(ByteBuf hello, int index) {
        return authentication == null ? NOTHING : authentication.prove(hello, index);
    }

    /** The capabilities of this end's device are known. */
    void prepare(EndpointCapabilities capabilities) {
        boolean reads = capabilities.readDepth() > 0 && options.rendezvousThresholdBytes() < Integer.MAX_VALUE;
        features = (reads ? Wire.FEATURE_READS : 0)
                | (capabilities.immediateData() ? Wire.FEATURE_IMMEDIATE : 0)
                | (capabilities.atomics() ? Wire.FEATURE_ATOMICS : 0)
                | Wire.FEATURE_ASKS;
    }

    /** The type of this end's frame in the handshake. */
    int type() {
        return role == MessageConnection.Role.ACCEPTOR ? Wire.HELLO_ACK : Wire.HELLO;
    }

    /**
     * This end's part of the handshake. It promises messages that fit into the budget; a stream is delivered as it
     * arrives, so its limit, which is for stretches by rendezvous, needs no part of the budget.
     */
    Wire.Hello hello(MessageBuffers buffers, int receiveBytes, int firstGrant, int greatestWindow) {
        promise(buffers);
        return new Wire.Hello.Builder()
                .framing(options.framing().wireValue())
                .features(features | programFeatures << Wire.PROGRAM_FEATURES_SHIFT)
                .receiveBufferBytes(receiveBytes)
                .window(firstGrant, greatestWindow)
                .maxMessageBytes(maxInboundBytes)
                .maxRendezvous(options.maxRendezvous())
                .build();
    }

    private void promise(MessageBuffers buffers) {
        if (maxInboundBytes == 0) {
            maxInboundBytes = options.framing() == Framing.STREAM
                    ? options.maxMessageBytes()
                    : buffers.promise(options.maxMessageBytes());
        }
    }

    /** Takes the peer's first frame; returns the violation, or null. */
    @Nullable String receive(int type, ByteBuf frame, int lengthBytes) {
        int expected = role == MessageConnection.Role.ACCEPTOR ? Wire.HELLO : Wire.HELLO_ACK;
        if (type != expected || lengthBytes < Wire.HELLO_BYTES || peer != null) {
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
        String refusal = authentication == null ? null : authentication.refusal(frame, lengthBytes);
        if (refusal != null) {
            refused = true;
            return refusal;
        }
        peer = hello;
        return null;
    }

    /** The peer's HELLO; null before it has arrived. */
    Wire.@Nullable Hello peer() {
        return peer;
    }

    /** Agrees on the parameters, once both ends are known. */
    Negotiated agree(Endpoint endpoint, Wire.Hello hello, MessageBuffers buffers, RendezvousSender sender) {
        promise(buffers);
        peerPayloadBytes = hello.receiveBufferBytes() - Wire.HEADER_BYTES;
        maxOutboundBytes = hello.maxMessageBytes();
        int threshold = options.rendezvousThresholdBytes() == MessageOptions.DEVICE_DEFAULT
                ? endpoint.rendezvousBytes(hello.receiveBufferBytes())
                : options.rendezvousThresholdBytes();
        int maxRendezvous = Math.min(options.maxRendezvous(), hello.maxRendezvous());
        boolean rendezvous =
                (hello.features() & Wire.FEATURE_READS) != 0 && maxRendezvous > 0 && threshold < Integer.MAX_VALUE;
        sender.agree(threshold, rendezvous ? maxRendezvous : 0);
        Negotiated agreed = new Negotiated(
                Wire.VERSION,
                options.framing(),
                hello.receiveBufferBytes(),
                hello.window(),
                maxOutboundBytes,
                maxInboundBytes,
                rendezvous);
        negotiated = agreed;
        return agreed;
    }

    /** The parameters of framing RAW, which agrees on nothing. */
    Negotiated agreeRaw(int receiveBytes) {
        Negotiated agreed = new Negotiated(
                0, Framing.RAW, Integer.MAX_VALUE, Integer.MAX_VALUE, Integer.MAX_VALUE, receiveBytes, false);
        negotiated = agreed;
        return agreed;
    }

    @Nullable Negotiated negotiated() {
        return negotiated;
    }

    boolean hasFeature(int feature) {
        return (features & feature) != 0;
    }

    /** Whether both ends have a feature; with RAW, where the peer does not say, this one. */
    boolean haveFeature(int feature) {
        Wire.Hello hello = peer;
        boolean peerHas = options.framing() == Framing.RAW || (hello != null && (hello.features() & feature) != 0);
        return hasFeature(feature) && peerHas;
    }

    /** How many bytes of a message fit into one frame. */
    int peerPayloadBytes() {
        return peerPayloadBytes;
    }

    int maxOutboundBytes() {
        return maxOutboundBytes;
    }

    int maxInboundBytes() {
        return maxInboundBytes;
    }
}
