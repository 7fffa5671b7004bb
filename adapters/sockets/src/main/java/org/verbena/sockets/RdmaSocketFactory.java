package org.verbena.sockets;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketException;
import javax.net.SocketFactory;
import org.jspecify.annotations.Nullable;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaServerSocketChannel;
import org.verbena.api.RdmaSocketChannel;
import org.verbena.transport.CompletionLoopOptions;

/**
 * Makes blocking sockets whose connections are {@link RdmaSocketChannel}s, for programs and libraries that take a
 * {@code SocketFactory}: JDBC drivers, clients of caches and queues. The peer is an {@link RdmaServerSocketFactory}'s
 * socket or an {@link RdmaServerSocketChannel}.
 *
 * <pre>{@code
 * Socket socket = new RdmaSocketFactory().createSocket("host", 7471);
 * }</pre>
 *
 * <p><b>What is the same.</b> The sockets behave as the JDK documents: timeouts of connecting and reading, half close,
 * {@code close()} that wakes a blocked thread, exceptions. Platform threads and virtual threads may block in them; a
 * virtual thread that is interrupted closes its socket. Both directions have back-pressure: a write waits while 256 KiB
 * are not sent yet, and if a socket is not read, its peer has to wait once its credits are used up, after a megabyte
 * (up to four on soft).
 *
 * <p><b>What differs.</b> There is no urgent data. {@code getChannel()} is null. Buffer sizes and other options of TCP
 * are kept and have no effect. A socket must not be used on an event loop, which it would block: there it throws {@code
 * IllegalStateException} instead of waiting. When the peer closes without having read everything, reads end with -1,
 * not with a reset.
 *
 * <p><b>At the end of the process</b> closed sockets get up to 10 s to send what was written.
 *
 * <p><b>Cost.</b> A thread waits for its event loop, so each message costs two thread switches that a channel's handler
 * does not need.
 */
public final class RdmaSocketFactory extends SocketFactory {
    private final @Nullable RdmaEventLoopGroup group;

    /**
     * Makes a factory on one group of daemon threads for the whole process, which uses the configured provider ({@code
     * -Dorg.verbena.provider}).
     */
    public RdmaSocketFactory() {
        group = null;
    }

    /**
     * Makes a factory on the given loops, which determine the provider and how the loops wait for messages ({@link
     * CompletionLoopOptions}).
     *
     * @param group the loops; it must outlive the sockets
     */
    public RdmaSocketFactory(RdmaEventLoopGroup group) {
        this.group = group;
    }

    /**
     * Makes a factory as the constructor without loops does, for libraries that take the name of a class.
     *
     * @return a new one
     */
    public static SocketFactory getDefault() {
        return new RdmaSocketFactory();
    }

    /** Makes a socket that is not connected yet. */
    @Override
    public Socket createSocket() throws SocketException {
        return new RdmaSocket(new RdmaSocketImpl(group == null ? SharedLoops.get() : group));
    }

    /**
     * Makes a socket and connects it.
     *
     * @param host a name or address; null for the loopback address
     * @throws IOException it cannot be connected
     */
    @Override
    public Socket createSocket(@Nullable String host, int port) throws IOException {
        return connect(null, of(host, port));
    }

    /**
     * Makes a socket, binds it and connects it.
     *
     * @param host a name or address; null for the loopback address
     * @param localHost the address to bind to; null for any
     * @throws IOException it cannot be bound or connected
     */
    @Override
    public Socket createSocket(@Nullable String host, int port, @Nullable InetAddress localHost, int localPort)
            throws IOException {
        return connect(new InetSocketAddress(localHost, localPort), of(host, port));
    }

    /**
     * Makes a socket and connects it.
     *
     * @throws IOException it cannot be connected
     */
    @Override
    public Socket createSocket(InetAddress host, int port) throws IOException {
        return connect(null, new InetSocketAddress(host, port));
    }

    /**
     * Makes a socket, binds it and connects it.
     *
     * @param localAddress the address to bind to; null for any
     * @throws IOException it cannot be bound or connected
     */
    @Override
    public Socket createSocket(InetAddress address, int port, @Nullable InetAddress localAddress, int localPort)
            throws IOException {
        return connect(new InetSocketAddress(localAddress, localPort), new InetSocketAddress(address, port));
    }

    private static InetSocketAddress of(@Nullable String host, int port) {
        return host == null
                ? new InetSocketAddress(InetAddress.getLoopbackAddress(), port)
                : new InetSocketAddress(host, port);
    }

    private Socket connect(@Nullable InetSocketAddress from, InetSocketAddress to) throws IOException {
        Socket socket = createSocket();
        try {
            if (from != null) {
                socket.bind(from);
            }
            socket.connect(to);
            return socket;
        } catch (Throwable cause) {
            try {
                socket.close();
            } catch (IOException besides) {
                cause.addSuppressed(besides);
            }
            throw cause;
        }
    }
}
