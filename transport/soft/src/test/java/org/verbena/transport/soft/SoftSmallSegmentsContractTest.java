package org.verbena.transport.soft;

import org.verbena.transport.spi.RdmaProvider;

/** The provider contract, with segments of 200 bytes, as if every message were long. */
class SoftSmallSegmentsContractTest extends SoftContractTest {
    private static final RdmaProvider PROVIDER =
            new SoftProvider(SoftOptions.ofSystemProperties().with(o -> {
                o.handshakeTimeoutMillis = 4_000;
                o.maxFpduBytes = 200;
            }));

    @Override
    protected RdmaProvider provider() {
        return PROVIDER;
    }

    @Override
    protected int connectionCount() {
        return 50;
    }
}
