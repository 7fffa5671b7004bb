package org.verbena.transport.shm;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import org.verbena.transport.spi.ControlPathWalk;
import org.verbena.transport.spi.RdmaProvider;

class ShmWalkTest extends ControlPathWalk {
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
