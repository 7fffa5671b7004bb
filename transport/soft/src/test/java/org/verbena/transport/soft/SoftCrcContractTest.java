package org.verbena.transport.soft;

import org.verbena.transport.spi.RdmaProvider;

/** The provider contract, with CRC32C on. */
class SoftCrcContractTest extends SoftContractTest {
    private static final RdmaProvider PROVIDER =
            new SoftProvider(new SoftOptions(true, 2, true, 1_000, 256, 30_000, 0, 4096));

    @Override
    protected RdmaProvider provider() {
        return PROVIDER;
    }

    @Override
    protected int connectionCount() {
        return 50;
    }
}
