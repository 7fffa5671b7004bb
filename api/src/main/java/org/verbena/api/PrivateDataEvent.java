package org.verbena.api;

import java.util.HexFormat;
import org.verbena.transport.Framing;

/**
 * The private data that the peer of a channel with {@link Framing#RAW} passed with the connection's set-up: {@link
 * RdmaChannelOption#CONNECT_PRIVATE_DATA} at the end that accepts, {@link RdmaChannelOption#ACCEPT_PRIVATE_DATA} at the
 * end that connects; or the {@code private_data} of a program in C. Fired through the pipeline once, with {@code
 * userEventTriggered}, before {@code channelActive}.
 *
 * <p>At the accepting end the request is not accepted yet: a handler may set {@code ACCEPT_PRIVATE_DATA} and other
 * options of the channel, or close the channel, which rejects the peer.
 */
public final class PrivateDataEvent {
    private final byte[] data;

    /** The event owns the array. */
    PrivateDataEvent(byte[] data) {
        this.data = data;
    }

    /**
     * The peer's bytes. InfiniBand and RoCE do not carry their length and append zeros: 56 bytes in all from the end
     * that connects and 196 from the end that accepts.
     *
     * @return a copy; empty, or all zeros, if the peer gave none
     */
    public byte[] data() {
        return data.clone();
    }

    @Override
    public String toString() {
        return "PrivateDataEvent[" + data.length + " bytes: " + HexFormat.of().formatHex(data) + "]";
    }
}
