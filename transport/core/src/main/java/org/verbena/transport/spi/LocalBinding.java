package org.verbena.transport.spi;

import io.netty.channel.IoEventLoop;
import java.net.InetSocketAddress;

/**
 * A local address from which one connection can be made, bound by {@link RdmaProvider#bind}. {@link #connect} or {@link
 * #close} ends it.
 */
public interface LocalBinding extends AutoCloseable {

    /**
     * The address that was bound.
     *
     * @return address and port
     */
    InetSocketAddress localAddress();

    /**
     * Connects from this address, as {@link RdmaProvider#connect} does otherwise. Once.
     *
     * @param loop an event loop of the provider; the endpoint's thread
     * @param remoteAddress the peer's address, resolved
     * @param options as for connect
     * @param handler receives the events of the endpoint
     * @return the endpoint, not connected yet
     */
    Endpoint connect(
            IoEventLoop loop, InetSocketAddress remoteAddress, EndpointOptions options, EndpointHandler handler);

    /** Gives the address back. No effect once connecting has begun. Idempotent. */
    @Override
    void close();
}
