package org.verbena.transport.soft;

import static org.assertj.core.api.Assumptions.assumeThat;

import org.junit.jupiter.api.BeforeAll;
import org.verbena.transport.soft.uring.SocketIo;
import org.verbena.transport.spi.RdmaProvider;

/** The provider contract on io_uring. */
class SoftUringContractTest extends SoftContractTest {
    private static final RdmaProvider PROVIDER = new SoftProvider(SoftOptions.DEFAULTS.with(o -> {
        o.handshakeTimeoutMillis = 4_000;
        o.io = SoftOptions.Io.IO_URING;
    }));

    @BeforeAll
    static void needsTheKernel() {
        assumeThat(SocketIo.unavailabilityCause()).isNull();
    }

    @Override
    protected RdmaProvider provider() {
        return PROVIDER;
    }
}
