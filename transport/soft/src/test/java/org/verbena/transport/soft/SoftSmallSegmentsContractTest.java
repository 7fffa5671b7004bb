package org.verbena.transport.soft;

import org.verbena.transport.spi.RdmaProvider;

/** The provider contract, with segments of 200 bytes, as if every message were long. */
class SoftSmallSegmentsContractTest extends SoftContractTest {
    private static final RdmaProvider PROVIDER =
            new SoftProvider(new SoftOptions(false, 2, true, 1_000, 256, 30_000, 200, 4096));

    @Override
    protected RdmaProvider provider() {
        return PROVIDER;
    }

    @Override
    protected int connectionCount() {
        return 50;
    }
}
