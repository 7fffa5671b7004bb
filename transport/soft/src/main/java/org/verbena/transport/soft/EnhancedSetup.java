package org.verbena.transport.soft;

/**
 * The four bytes of enhanced connection setup: read depths, and how a peer-to-peer connection is made ready.
 *
 * <pre>{@code
 * |A|B| IRD (14) |C|D| ORD (14) |     A peer-to-peer, B send, C write, D read as ready-to-receive message
 * }</pre>
 *
 * <p>Source: RFC 6581, 9
 *
 * @param inboundReads how many reads the sender can serve at a time
 * @param outboundReads how many it will have out at a time
 * @param peerToPeer whether a ready-to-receive message follows the reply
 * @param sendReady whether it may be a zero-length send
 * @param writeReady whether it may be a zero-length write
 * @param readReady whether it may be a zero-length read
 */
record EnhancedSetup(
        int inboundReads,
        int outboundReads,
        boolean peerToPeer,
        boolean sendReady,
        boolean writeReady,
        boolean readReady) {

    /** The length of the encoded form. */
    static final int BYTES = 4;

    /** The depth that says: not negotiated here. */
    static final int NOT_NEGOTIATED = 0x3fff;

    private static final int HIGH = 0x8000;
    private static final int LOW = 0x4000;

    /**
     * Decodes it; without A the other flags are ignored.
     *
     * @param bits four bytes, big-endian
     * @return the block
     */
    static EnhancedSetup decode(int bits) {
        int inbound = bits >>> 16;
        int outbound = bits & 0xffff;
        boolean peerToPeer = (inbound & HIGH) != 0;
        return new EnhancedSetup(
                inbound & NOT_NEGOTIATED,
                outbound & NOT_NEGOTIATED,
                peerToPeer,
                peerToPeer && (inbound & LOW) != 0,
                peerToPeer && (outbound & HIGH) != 0,
                peerToPeer && (outbound & LOW) != 0);
    }

    /**
     * Encodes it.
     *
     * @return four bytes, big-endian
     */
    int encode() {
        int inbound = inboundReads | (peerToPeer ? HIGH : 0) | (sendReady ? LOW : 0);
        int outbound = outboundReads | (writeReady ? HIGH : 0) | (readReady ? LOW : 0);
        return inbound << 16 | outbound;
    }
}
