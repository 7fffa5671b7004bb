package org.verbena.transport.soft;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import org.verbena.transport.spi.ProviderContract;
import org.verbena.transport.spi.RdmaProvider;
import org.verbena.transport.spi.WorkRequest;

/** The provider contract, on loopback. */
class SoftContractTest extends ProviderContract {
    private static final RdmaProvider PROVIDER =
            new SoftProvider(SoftOptions.ofSystemProperties().with(o -> o.handshakeTimeoutMillis = 4_000));

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
        // A write is complete when TCP has taken it, before the peer can refuse it.
        return opcode != WorkRequest.Opcode.WRITE;
    }
}
