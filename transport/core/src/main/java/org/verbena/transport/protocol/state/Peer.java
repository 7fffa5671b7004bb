package org.verbena.transport.protocol.state;

import org.jspecify.annotations.Nullable;
import org.verbena.transport.spi.Endpoint;

/** The peer's address as far as it is known, for exceptions and events. */
public final class Peer {
    private @Nullable Endpoint endpoint;
    private boolean prepared;

    public void setEndpoint(Endpoint value) {
        endpoint = value;
    }

    public @Nullable Endpoint endpoint() {
        return endpoint;
    }

    /** From now on the endpoint's own address is known as well. */
    public void setPrepared() {
        prepared = true;
    }

    public boolean isPrepared() {
        return prepared;
    }

    /** Ends the connection, or the attempt, if there is one already. */
    public void disconnect() {
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
