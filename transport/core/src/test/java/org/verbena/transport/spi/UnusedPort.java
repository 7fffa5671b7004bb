package org.verbena.transport.spi;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;

/**
 * A TCP port at which nobody listens, for as long as this is open. A port that was only looked for and is free may be
 * another program's by the time a test connects to it.
 */
public final class UnusedPort implements AutoCloseable {
    private final Socket bound = new Socket();

    /**
     * Takes one.
     *
     * @param host an address of this machine
     * @throws IOException if it has no port left
     */
    public UnusedPort(String host) throws IOException {
        bound.bind(new InetSocketAddress(host, 0));
    }

    /** Its number. */
    public int number() {
        return bound.getLocalPort();
    }

    @Override
    public void close() throws IOException {
        bound.close();
    }
}
