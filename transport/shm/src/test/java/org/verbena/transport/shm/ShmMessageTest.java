package org.verbena.transport.shm;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import org.verbena.transport.protocol.connection.MessageContract;
import org.verbena.transport.spi.RdmaProvider;

/** The message protocol over shared memory, within one process. */
class ShmMessageTest extends MessageContract {
    private static final RdmaProvider PROVIDER = new ShmProvider(ShmOptions.DEFAULTS);

    @Override
    protected RdmaProvider provider() {
        return PROVIDER;
    }

    @Override
    protected InetSocketAddress listenAddress() {
        return new InetSocketAddress(InetAddress.getLoopbackAddress(), 0);
    }
}
