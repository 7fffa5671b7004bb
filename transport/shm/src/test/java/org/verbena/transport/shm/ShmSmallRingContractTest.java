package org.verbena.transport.shm;

import org.verbena.transport.spi.RdmaProvider;

/** The provider contract with the smallest rings: most messages are in pieces, and writers wait for readers. */
class ShmSmallRingContractTest extends ShmContractTest {
    private static final RdmaProvider PROVIDER = new ShmProvider(
            ShmOptions.DEFAULTS.withHandshakeTimeoutMillis(4_000).withRingBytes(Ring.MIN_BYTES));

    @Override
    protected RdmaProvider provider() {
        return PROVIDER;
    }

    @Override
    protected int connectionCount() {
        return 50;
    }
}
