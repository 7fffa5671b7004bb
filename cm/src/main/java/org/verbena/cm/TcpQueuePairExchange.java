package org.verbena.cm;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/**
 * Connects queue pairs without a connection manager: the two sides exchange addresses over a TCP connection, and each
 * moves its own queue pairs to RTS. The format is that of rdma-core's {@code ibv_*_pingpong} programs, so either side
 * may be one of these. Memory keys and synchronisation points, which those programs lack, follow on the same connection
 * if both sides use them.
 *
 * <pre>{@code
 * QueuePairPath path = QueuePairPath.of(1, gidIndex, Mtu.MTU_1024);
 * path.initialize(queuePair);
 * QueuePairAddress local = path.addressOf(queuePair);
 * try (TcpQueuePairExchange exchange = TcpQueuePairExchange.connect(server, 5000)) {
 *     exchange.addresses(List.of(local), remote -> path.connect(queuePair, local, remote.getFirst(), 1));
 * }
 * }</pre>
 *
 * <p>The exchange is not protected: use it only on a trusted network. One thread. Source: ibv_rc_pingpong(1)
 */
public final class TcpQueuePairExchange implements AutoCloseable {
    /** The acknowledgement that a ping-pong client sends for the server's addresses, with C's zero byte. */
    private static final String DONE = "done\0";

    /**
     * A buffer that the peer may read or write.
     *
     * @param address the address of its first byte, for the peer's work requests
     * @param remoteKey the key of its region
     * @param lengthBytes its size
     */
    public record RemoteBuffer(long address, int remoteKey, int lengthBytes) {}

    private final Socket socket;
    private final boolean server;
    private final DataInputStream in;
    private final DataOutputStream out;

    private TcpQueuePairExchange(Socket socket, boolean server) throws IOException {
        this.socket = socket;
        this.server = server;
        socket.setTcpNoDelay(true);
        in = new DataInputStream(socket.getInputStream());
        out = new DataOutputStream(socket.getOutputStream());
    }

    /**
     * Waits for a client, for the time set by the listener's {@link ServerSocket#setSoTimeout}: by default forever.
     *
     * @param listener a bound listener; the caller closes it
     * @param timeoutMillis how long to wait for each answer of the client; 0 waits forever
     * @return to be closed by the caller
     * @throws IOException no client connected in time
     */
    public static TcpQueuePairExchange accept(ServerSocket listener, int timeoutMillis) throws IOException {
        return open(listener.accept(), true, timeoutMillis);
    }

    /**
     * Connects to a server.
     *
     * @param server the server's address
     * @param timeoutMillis how long to wait for the connection, and for each answer; 0 waits forever
     * @return to be closed by the caller
     * @throws IOException the server cannot be reached
     */
    public static TcpQueuePairExchange connect(InetSocketAddress server, int timeoutMillis) throws IOException {
        Socket socket = new Socket();
        try {
            socket.connect(server, timeoutMillis);
        } catch (IOException unreachable) {
            socket.close();
            throw new IOException(
                    "cannot exchange queue pair addresses with " + server + ": " + unreachable.getMessage(),
                    unreachable);
        }
        return open(socket, false, timeoutMillis);
    }

    private static TcpQueuePairExchange open(Socket socket, boolean server, int timeoutMillis) throws IOException {
        try {
            socket.setSoTimeout(timeoutMillis);
            return new TcpQueuePairExchange(socket, server);
        } catch (IOException | RuntimeException failure) {
            socket.close();
            throw failure;
        }
    }

    /**
     * Which side this is.
     *
     * @return true for the one that accepted
     */
    public boolean isServer() {
        return server;
    }

    /**
     * Exchanges the addresses of queue pairs with the peer, and connects them. The client sends first; the server
     * connects before it answers, so that its queue pairs are ready when the client's first message arrives.
     *
     * @param local one or more; the peer must have as many
     * @param connector moves this side's queue pairs to RTS, given the peer's addresses in the same order
     * @throws IOException the peer is gone, or sent something else
     */
    public void addresses(List<QueuePairAddress> local, Consumer<List<QueuePairAddress>> connector) throws IOException {
        if (server) {
            List<QueuePairAddress> remote = read(local.size());
            connector.accept(remote);
            write(local);
            expectDone();
        } else {
            write(local);
            List<QueuePairAddress> remote = read(local.size());
            out.write(DONE.getBytes(StandardCharsets.US_ASCII));
            out.flush();
            connector.accept(remote);
        }
    }

    private void write(List<QueuePairAddress> addresses) throws IOException {
        StringBuilder text = new StringBuilder();
        for (QueuePairAddress address : addresses) {
            text.append(address.toWire()).append('\0');
        }
        out.write(text.toString().getBytes(StandardCharsets.US_ASCII));
        out.flush();
    }

    private List<QueuePairAddress> read(int count) throws IOException {
        List<QueuePairAddress> addresses = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            String text = new String(readExactly(QueuePairAddress.WIRE_BYTES), StandardCharsets.US_ASCII);
            try {
                addresses.add(QueuePairAddress.ofWire(text.substring(0, QueuePairAddress.WIRE_BYTES - 1)));
            } catch (IllegalArgumentException stranger) {
                throw new IOException(stranger.getMessage(), stranger);
            }
        }
        return List.copyOf(addresses);
    }

    private void expectDone() throws IOException {
        String text = new String(readExactly(DONE.length()), StandardCharsets.US_ASCII);
        if (!text.equals(DONE)) {
            throw new IOException("the client sent '" + text.trim() + "' instead of 'done'");
        }
    }

    private byte[] readExactly(int count) throws IOException {
        byte[] bytes = in.readNBytes(count);
        if (bytes.length < count) {
            throw new IOException("the peer closed the connection after " + bytes.length + " of " + count
                    + " bytes; its own output says why");
        }
        return bytes;
    }

    /**
     * Exchanges buffers with the peer.
     *
     * @param local this side's buffer
     * @return the peer's buffer
     * @throws IOException the peer is gone
     */
    public RemoteBuffer buffers(RemoteBuffer local) throws IOException {
        out.writeLong(local.address());
        out.writeInt(local.remoteKey());
        out.writeInt(local.lengthBytes());
        out.flush();
        return new RemoteBuffer(in.readLong(), in.readInt(), in.readInt());
    }

    /**
     * Waits until the peer is at the same point.
     *
     * @param point a number that both sides use for it
     * @throws IOException the peer is gone or at another point
     */
    public void synchronize(char point) throws IOException {
        out.writeByte(point);
        out.flush();
        char other = (char) in.readUnsignedByte();
        if (other != point) {
            throw new IOException("the peer is at point " + other + ", and this side at " + point);
        }
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}
