package org.verbena.transport.soft;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import org.verbena.transport.spi.ControlPathWalk;
import org.verbena.transport.spi.RdmaProvider;

class SoftWalkTest extends ControlPathWalk {
    /** A walk tries more wrong keys than an honest address may. */
    private static final RdmaProvider PROVIDER =
            new SoftProvider(SoftOptions.ofSystemProperties().with(o -> o.wrongKeysPerSecond = 0));

    @Override
    protected RdmaProvider provider() {
        return PROVIDER;
    }

    @Override
    protected InetSocketAddress listenAddress() {
        return new InetSocketAddress(InetAddress.getLoopbackAddress(), 0);
    }
}
