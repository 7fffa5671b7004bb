package org.verbena.transport.spi;

import io.netty.channel.IoEventLoop;
import java.net.InetSocketAddress;

/** A connection request. Either method may be called on any thread; the first call of either decides, a second one throws IllegalStateException. */
public interface IncomingConnection {

    /**
     * Which of our addresses it came to.
     *
     * @return address and port
     */
    InetSocketAddress localAddress();

    /**
     * Who asks.
     *
     * @return address and port
     */
    InetSocketAddress remoteAddress();

    /**
     * What the peer sent along.
     *
     * @return a copy; possibly padded with zeros
     */
    byte[] privateData();

    /**
     * Whether it can still be accepted. Rejecting one that cannot only lets go of what is left of it.
     *
     * @return false once it was accepted or rejected, has waited too long, or the peer has gone
     */
    boolean isPending();

    /**
     * Takes the connection. The handler hears prepared, then connected or disconnected.
     *
     * @param loop an event loop of the same provider; the endpoint's thread
     * @param options depths, limits, private data of the reply
     * @param handler hears everything about this endpoint
     * @return the endpoint, not connected yet
     */
    Endpoint accept(IoEventLoop loop, EndpointOptions options, EndpointHandler handler);

    /**
     * Turns it away.
     *
     * @param privateData the reason, for the peer's {@link ConnectionException}; at most {@link EndpointOptions#MAX_PRIVATE_DATA_BYTES}
     */
    void reject(byte[] privateData);
}
