package org.verbena.transport.protocol;

import org.verbena.transport.Framing;

/**
 * The parameters that both ends agreed on.
 *
 * @param version the protocol version; 0 for RAW
 * @param framing the content of a SEND
 * @param peerReceiveBufferBytes the largest SEND that the peer accepts, header included, once its receives have grown;
 *     {@link Integer#MAX_VALUE} if unknown (RAW)
 * @param peerWindow SENDs with messages that the peer accepts at first, before it returns credits; {@link
 *     Integer#MAX_VALUE} if unknown (RAW)
 * @param maxOutboundMessageBytes the largest message that may be sent: the peer's limit
 * @param maxInboundMessageBytes the largest message that may arrive
 * @param rendezvous whether the receiver reads large messages from the sender's memory, without copies or fragments
 */
public record Negotiated(
        int version,
        Framing framing,
        int peerReceiveBufferBytes,
        int peerWindow,
        int maxOutboundMessageBytes,
        int maxInboundMessageBytes,
        boolean rendezvous) {}
