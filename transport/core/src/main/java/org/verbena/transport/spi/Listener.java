package org.verbena.transport.spi;

import java.net.InetSocketAddress;

/** A listener for connection requests. */
public interface Listener {

    /**
     * The address that it listens at.
     *
     * @return the address, with the actual port
     * @throws IllegalStateException before {@link ListenerHandler#onListening}
     */
    InetSocketAddress localAddress();

    /**
     * Stops listening; {@link ListenerHandler#onClosed} follows. Accepted connections stay open; those
     * whose requests are not complete are closed. Idempotent, on any thread.
     */
    void close();
}
