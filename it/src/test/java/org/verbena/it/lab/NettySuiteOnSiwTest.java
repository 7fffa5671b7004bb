package org.verbena.it.lab;

import io.netty.testsuite.transport.socket.SocketTestPermutation;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Tag;
import org.verbena.api.testsuite.NettySuite;
import org.verbena.api.testsuite.RdmaSocketTestPermutation;

/** Netty's own tests of socket transports on verbs over soft iWARP. */
@Tag("lab")
@Tag("lab-full")
@Tag("lab-long")
class NettySuiteOnSiwTest extends NettySuite {
    private static final RdmaSocketTestPermutation PERMUTATION =
            new RdmaSocketTestPermutation("verbs", LabDevice.SIW.address());

    @Override
    protected SocketTestPermutation permutation() {
        return PERMUTATION;
    }

    @AfterAll
    static void closeChannels() {
        PERMUTATION.close();
    }
}
