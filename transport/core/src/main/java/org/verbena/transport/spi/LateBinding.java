package org.verbena.transport.spi;

import io.netty.channel.IoEventLoop;
import java.net.InetSocketAddress;

/** An address that is taken when the connection is made from it, no sooner. */
record LateBinding(RdmaProvider provider, InetSocketAddress localAddress) implements LocalBinding {
    @Override
    public Endpoint connect(
            IoEventLoop loop, InetSocketAddress remoteAddress, EndpointOptions options, EndpointHandler handler) {
        return provider.connect(
                loop,
                remoteAddress,
                options.toBuilder().localAddress(localAddress).build(),
                handler);
    }

    @Override
    public void close() {
        // Nothing was taken.
    }
}
