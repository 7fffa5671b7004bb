package org.verbena.sockets;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import javax.net.ServerSocketFactory;
import org.jspecify.annotations.Nullable;
import org.verbena.api.RdmaEventLoopGroup;

/**
 * Makes blocking server sockets that listen for RDMA connections. Accepted sockets behave as those of {@link
 * RdmaSocketFactory}.
 *
 * <pre>{@code
 * ServerSocket server = new RdmaServerSocketFactory().createServerSocket(7471);
 * Socket connection = server.accept();
 * }</pre>
 *
 * <p>As with TCP, a client's {@code connect} returns before the connection is accepted, for as many connections as the
 * backlog allows (50 by default). The same number again waits in {@code connect}; further ones are refused. Closing the
 * server socket closes the connections that nobody has accepted. Any thread.
 */
public final class RdmaServerSocketFactory extends ServerSocketFactory {
    private final @Nullable RdmaEventLoopGroup group;

    /**
     * Makes a factory on one group of daemon threads for the whole process, which uses the configured provider ({@code
     * -Dorg.verbena.provider}).
     */
    public RdmaServerSocketFactory() {
        group = null;
    }

    /**
     * Makes a factory on the given loops.
     *
     * @param group the loops; it must outlive the sockets
     */
    public RdmaServerSocketFactory(RdmaEventLoopGroup group) {
        this.group = group;
    }

    /**
     * Makes a factory as the constructor without loops does, for libraries that take the name of a class.
     *
     * @return a new one
     */
    public static ServerSocketFactory getDefault() {
        return new RdmaServerSocketFactory();
    }

    /** Makes a server socket that is not bound yet. */
    @Override
    public ServerSocket createServerSocket() {
        return new RdmaServerSocket(new RdmaServerSocketImpl(group == null ? SharedLoops.get() : group));
    }

    /**
     * Makes a server socket that listens on all addresses.
     *
     * @param port the port; 0 selects any free port
     * @throws IOException it cannot listen
     */
    @Override
    public ServerSocket createServerSocket(int port) throws IOException {
        return createServerSocket(port, 0, null);
    }

    /**
     * Makes a server socket that listens on all addresses.
     *
     * @param port the port; 0 selects any free port
     * @param backlog how many connections may wait to be accepted; 0 or less for 50
     * @throws IOException it cannot listen
     */
    @Override
    public ServerSocket createServerSocket(int port, int backlog) throws IOException {
        return createServerSocket(port, backlog, null);
    }

    /**
     * Makes a server socket that listens.
     *
     * @param port the port; 0 selects any free port
     * @param backlog how many connections may wait to be accepted; 0 or less for 50
     * @param ifAddress the address; null for all
     * @throws IOException it cannot listen
     */
    @Override
    public ServerSocket createServerSocket(int port, int backlog, @Nullable InetAddress ifAddress) throws IOException {
        ServerSocket server = createServerSocket();
        try {
            server.bind(new InetSocketAddress(ifAddress, port), backlog);
            return server;
        } catch (Throwable cause) {
            server.close();
            throw cause;
        }
    }
}
