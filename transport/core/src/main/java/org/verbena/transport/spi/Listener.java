package org.verbena.transport.spi;

import java.net.InetSocketAddress;

/** Something that listens for connection requests. */
public interface Listener {

    /**
     * Where it listens.
     *
     * @return the address, with the port that was taken
     * @throws IllegalStateException before {@link ListenerHandler#onListening}
     */
    InetSocketAddress localAddress();

    /** Stops listening; {@link ListenerHandler#onClosed} follows. Connections that were accepted live on. Idempotent, on any thread. */
    void close();
}
