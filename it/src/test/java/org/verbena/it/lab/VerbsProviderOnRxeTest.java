package org.verbena.it.lab;

import java.net.InetSocketAddress;
import java.util.EnumSet;
import java.util.Set;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.spi.ProviderContract;
import org.verbena.transport.spi.RdmaProvider;
import org.verbena.transport.verbs.VerbsProvider;

/** The native provider over soft RoCE keeps the contract. */
@Tag("lab")
class VerbsProviderOnRxeTest extends ProviderContract {
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
    protected int connectionCount() {
        return Integer.getInteger("verbena.test.connections", 200);
    }

    /** The connection manager has a thousand on rxe every day, and this contract 300 on siw. */
    @Test
    @Timeout(300)
    @Tag("lab-full")
    @Override
    protected void manyConnections() {
        super.manyConnections();
    }

    /** rxe finds the receive malformed, or completes it with what it tells the peer, as its version goes. */
    @Override
    protected Set<WorkStatus> receiveTooSmallStatuses() {
        return EnumSet.of(
                WorkStatus.LOCAL_LENGTH_ERROR,
                WorkStatus.LOCAL_QUEUE_PAIR_OPERATION_ERROR,
                WorkStatus.REMOTE_INVALID_REQUEST_ERROR);
    }
}
