package org.verbena.api.testsuite;

import io.netty.testsuite.transport.socket.SocketTestPermutation;

/** Netty's suite over the soft provider. */
class SoftNettySuiteTest extends NettySuite {
    private static final RdmaSocketTestPermutation PERMUTATION = new RdmaSocketTestPermutation("soft");

    @Override
    protected SocketTestPermutation permutation() {
        return PERMUTATION;
    }
}
