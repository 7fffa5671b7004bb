package org.verbena.api.internal.server;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.spi.IncomingConnection;
import org.verbena.transport.spi.RdmaProvider;

/** A connection request. Requests of all providers share one queue and one backlog. Event loop only. */
public sealed interface Arrival {

    /** Whether it can still be accepted. */
    boolean isPending();

    /** Rejects it. */
    void reject(byte[] reason);

    /**
     * A connection request of a provider.
     *
     * @param provider that received it
     * @param request accepted or rejected
     */
    record Rdma(RdmaProvider provider, IncomingConnection request) implements Arrival {
        private static final Logger LOG = LoggerFactory.getLogger(Arrival.class);

        @Override
        public boolean isPending() {
            return request.isPending();
        }

        @Override
        public void reject(byte[] reason) {
            try {
                request.reject(reason);
            } catch (IllegalStateException decided) {
                LOG.debug("the request of {} was already accepted or rejected", request.remoteAddress(), decided);
            }
        }
    }

    /**
     * A TCP connection of another protocol. It waits as in a socket's backlog: no one checks whether its peer has left.
     *
     * @param provider whose listener took it
     * @param socket open, in no loop
     * @param firstBytes what was read of it
     */
    record Plain(RdmaProvider provider, SocketChannel socket, ByteBuffer firstBytes) implements Arrival {
        private static final Logger LOG = LoggerFactory.getLogger(Arrival.class);

        @Override
        public boolean isPending() {
            return true;
        }

        @Override
        public void reject(byte[] reason) {
            try {
                socket.close();
            } catch (IOException failure) {
                LOG.debug("closing {}", socket, failure);
            }
        }
    }
}
