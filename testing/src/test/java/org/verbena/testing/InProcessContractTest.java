package org.verbena.testing;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import org.verbena.transport.spi.ProviderContract;
import org.verbena.transport.spi.RdmaProvider;
import org.verbena.transport.spi.WorkRequest;

/** What every provider does. */
class InProcessContractTest extends ProviderContract {
    private static final RdmaProvider PROVIDER = new InProcessProvider(4_000, null);

    @Override
    protected RdmaProvider provider() {
        return PROVIDER;
    }

    @Override
    protected InetSocketAddress listenAddress() {
        return new InetSocketAddress(InetAddress.getLoopbackAddress(), 0);
    }

    @Override
    protected boolean reportsRemoteAccessErrors(WorkRequest.Opcode opcode) {
        // A write is complete when it is on its way, before the peer can refuse it.
        return opcode != WorkRequest.Opcode.WRITE;
    }
}
