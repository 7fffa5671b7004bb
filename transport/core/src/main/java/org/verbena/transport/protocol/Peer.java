package org.verbena.transport.protocol;

import org.jspecify.annotations.Nullable;
import org.verbena.transport.spi.Endpoint;

/** The peer's address as far as it is known, for exceptions and events. */
final class Peer {
    private @Nullable Endpoint endpoint;
    private boolean prepared;

    void setEndpoint(Endpoint value) {
        endpoint = value;
    }

    @Nullable Endpoint endpoint() {
        return endpoint;
    }

    /** From now on the endpoint's own address is known as well. */
    void setPrepared() {
        prepared = true;
    }

    boolean isPrepared() {
        return prepared;
    }

    /** Ends the connection, or the attempt, if there is one already. */
    void disconnect() {
        Endpoint current = endpoint;
        if (current != null) {
            current.disconnect();
        }
    }

    /** The address, or words for it. */
    @Override
    public String toString() {
        Endpoint current = endpoint;
        return current == null ? "the peer" : String.valueOf(current.remoteAddress());
    }
}
