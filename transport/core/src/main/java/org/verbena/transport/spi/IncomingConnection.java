package org.verbena.transport.spi;

import io.netty.channel.IoEventLoop;
import java.net.InetSocketAddress;
import org.verbena.transport.ConnectionException;

/**
 * A connection request. Accept or reject it on any thread; the first call decides, and a second one throws
 * IllegalStateException.
 */
public interface IncomingConnection {

    /**
     * The local address that it arrived at.
     *
     * @return address and port
     */
    InetSocketAddress localAddress();

    /**
     * The peer that wants to connect.
     *
     * @return address and port
     */
    InetSocketAddress remoteAddress();

    /**
     * The peer's private data.
     *
     * @return a copy; possibly padded with zeros
     */
    byte[] privateData();

    /**
     * Whether it can still be accepted. Rejecting one that cannot only frees its resources.
     *
     * @return false once it has been accepted or rejected, has waited too long, or the peer is gone
     */
    boolean isPending();

    /**
     * Accepts the connection. The handler is called with prepared, then with connected or disconnected. If the loop has
     * ended, it is called with disconnected only, on the thread that notices this.
     *
     * @param loop an event loop of the same provider; the endpoint's thread
     * @param options depths, limits, private data of the reply
     * @param handler receives the events of this endpoint
     * @return the endpoint, not connected yet
     */
    Endpoint accept(IoEventLoop loop, EndpointOptions options, EndpointHandler handler);

    /**
     * Rejects the connection.
     *
     * @param privateData the reason, for the peer's {@link ConnectionException}; at most {@link
     *     EndpointOptions#MAX_PRIVATE_DATA_BYTES}
     */
    void reject(byte[] privateData);
}
