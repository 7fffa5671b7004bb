package org.verbena.it.lab;

import java.net.InetSocketAddress;
import org.junit.jupiter.api.Tag;
import org.verbena.transport.spi.ControlPathWalk;
import org.verbena.transport.spi.RdmaProvider;
import org.verbena.transport.verbs.VerbsProvider;

/** The native provider over soft RoCE, on random walks. */
@Tag("lab")
@Tag("lab-full")
class WalkOnRxeTest extends ControlPathWalk {
    private static final RdmaProvider PROVIDER = new VerbsProvider();

    @Override
    protected RdmaProvider provider() {
        return PROVIDER;
    }

    @Override
    protected InetSocketAddress listenAddress() {
        return new InetSocketAddress(LabDevice.RXE.address(), 0);
    }

    /** Set lower than on a host: the guest is some ten times slower. */
    @Override
    protected int walks() {
        return Integer.getInteger("verbena.walks", 5);
    }
}
