package org.verbena.it.lab;

import java.net.InetSocketAddress;
import org.junit.jupiter.api.Tag;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.spi.ControlPathWalk;
import org.verbena.transport.spi.RdmaProvider;
import org.verbena.transport.verbs.VerbsProvider;

/** The native provider over soft iWARP, on random walks. */
@Tag("lab")
@Tag("lab-full")
class WalkOnSiwTest extends ControlPathWalk {
    private static final RdmaProvider PROVIDER = new VerbsProvider();

    @Override
    protected RdmaProvider provider() {
        return PROVIDER;
    }

    @Override
    protected InetSocketAddress listenAddress() {
        return new InetSocketAddress(LabDevice.SIW.address(), 0);
    }

    /** siw 6.1 serves reads of memory that was registered without REMOTE_READ. */
    @Override
    protected boolean looksAtRight(Access right) {
        return right != Access.REMOTE_READ;
    }

    /** Set lower than on a host: the guest is some ten times slower. */
    @Override
    protected int walks() {
        return Integer.getInteger("verbena.walks", 5);
    }
}
