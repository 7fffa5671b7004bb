package org.verbena.transport.soft;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import org.verbena.transport.protocol.connection.MessageContract;
import org.verbena.transport.spi.RdmaProvider;

/** The message protocol over software iWARP, on loopback. */
class SoftMessageTest extends MessageContract {
    private static final RdmaProvider PROVIDER = new SoftProvider(SoftOptions.ofSystemProperties());

    @Override
    protected RdmaProvider provider() {
        return PROVIDER;
    }

    @Override
    protected InetSocketAddress listenAddress() {
        return new InetSocketAddress(InetAddress.getLoopbackAddress(), 0);
    }
}
