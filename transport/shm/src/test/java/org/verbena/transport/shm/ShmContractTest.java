package org.verbena.transport.shm;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import org.verbena.transport.spi.ProviderContract;
import org.verbena.transport.spi.RdmaProvider;
import org.verbena.transport.spi.WorkRequest;

/** The provider contract, within one process. */
class ShmContractTest extends ProviderContract {
    private static final RdmaProvider PROVIDER = new ShmProvider(ShmOptions.DEFAULTS.withHandshakeTimeoutMillis(4_000));

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
        // A write is complete when it is in the ring, before the peer can refuse it.
        return opcode != WorkRequest.Opcode.WRITE;
    }
}
