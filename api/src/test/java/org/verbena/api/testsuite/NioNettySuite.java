package org.verbena.api.testsuite;

import io.netty.testsuite.transport.socket.SocketTestPermutation;

/**
 * Netty's suite over its NIO sockets, as control: {@code mvn test -pl api -am -Dtest='NioNettySuite,NettySuite*'}.
 */
class NioNettySuite extends NettySuite {
    private static final SocketTestPermutation PERMUTATION = new SocketTestPermutation();

    @Override
    protected SocketTestPermutation permutation() {
        return PERMUTATION;
    }
}
