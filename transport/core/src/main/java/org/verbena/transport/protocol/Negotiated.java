package org.verbena.transport.protocol;

/**
 * What both ends agreed on.
 *
 * @param version the protocol version; 0 for RAW
 * @param framing what a SEND carries
 * @param peerReceiveBufferBytes the largest SEND that the peer takes, header included; {@link Integer#MAX_VALUE} if unknown (RAW)
 * @param peerWindow SENDs with messages that the peer takes at first, before it returns credits; {@link Integer#MAX_VALUE} if unknown (RAW)
 * @param maxOutboundMessageBytes the largest message that may be sent: the peer's limit
 * @param maxInboundMessageBytes the largest message that may arrive
 * @param rendezvous whether large messages are read by the receiver out of the sender's memory, without copies or fragments
 */
public record Negotiated(
        int version,
        Framing framing,
        int peerReceiveBufferBytes,
        int peerWindow,
        int maxOutboundMessageBytes,
        int maxInboundMessageBytes,
        boolean rendezvous) {}
