package org.verbena.testing;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import org.verbena.transport.protocol.connection.MessageContract;
import org.verbena.transport.spi.RdmaProvider;

/** The message protocol within one process. */
class InProcessMessageTest extends MessageContract {
    private static final RdmaProvider PROVIDER = new InProcessProvider();

    @Override
    protected RdmaProvider provider() {
        return PROVIDER;
    }

    @Override
    protected InetSocketAddress listenAddress() {
        return new InetSocketAddress(InetAddress.getLoopbackAddress(), 0);
    }
}
