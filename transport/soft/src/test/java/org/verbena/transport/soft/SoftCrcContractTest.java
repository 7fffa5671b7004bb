package org.verbena.transport.soft;

import org.verbena.transport.spi.RdmaProvider;

/** The provider contract, with CRC32C on. */
class SoftCrcContractTest extends SoftContractTest {
    private static final RdmaProvider PROVIDER =
            new SoftProvider(SoftOptions.ofSystemProperties().with(o -> {
                o.crc = true;
                o.handshakeTimeoutMillis = 4_000;
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
