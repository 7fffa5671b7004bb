package org.verbena.cm;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.verbena.verbs.address.Gid;

/**
 * Connects queue pairs without a connection manager: the two sides exchange addresses over a TCP connection, and each
 * moves its own queue pairs to RTS. {@link #addresses} has the format of rdma-core's {@code ibv_*_pingpong} programs,
 * {@link #ends} and {@link #synchronize} have that of RDMA_RC_example, so either side may be one of these.
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
 * <p>The exchange is not protected: use it only on a trusted network. Not thread-safe. Source: ibv_rc_pingpong(1)
 */
public final class TcpQueuePairExchange implements AutoCloseable {
    /** The acknowledgement that a ping-pong client sends for the server's addresses, with C's zero byte. */
    private static final String DONE = "done\0";

    /** C's {@code cm_con_data_t}, packed: address, key, queue pair, LID and GID. */
    private static final int END_BYTES = 8 + 4 + 4 + 2 + Gid.BYTES;

    private static final int LID_BITS = 0xffff;

    /**
     * One end of a connection with memory.
     *
     * @param queuePair its address
     * @param bufferAddress of a buffer that the peer may read or write
     * @param remoteKey the key of the buffer's region
     */
    public record End(QueuePairAddress queuePair, long bufferAddress, int remoteKey) {}

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
     * Exchanges a queue pair's address and a buffer with the peer, in the format of RDMA_RC_example of the RDMA Aware
     * Networks Programming manual. It has no packet sequence numbers: both ends begin with 0.
     *
     * @param local this end; the packet sequence number of its queue pair is 0
     * @return the peer's end
     * @throws IllegalArgumentException the packet sequence number is another one
     * @throws IOException the peer is gone, or sent something else
     */
    public End ends(End local) throws IOException {
        QueuePairAddress address = local.queuePair();
        if (address.packetSequenceNumber() != 0) {
            throw new IllegalArgumentException(
                    "the peer takes the packet sequence number 0 for granted, not " + address.packetSequenceNumber());
        }
        out.write(ByteBuffer.allocate(END_BYTES)
                .putLong(local.bufferAddress())
                .putInt(local.remoteKey())
                .putInt(address.queuePairNumber())
                .putShort((short) address.lid())
                .put(address.gid().toBytes())
                .array());
        out.flush();
        ByteBuffer remote = ByteBuffer.wrap(readExactly(END_BYTES));
        long bufferAddress = remote.getLong();
        int remoteKey = remote.getInt();
        int queuePairNumber = remote.getInt();
        int lid = remote.getShort() & LID_BITS;
        byte[] gid = new byte[Gid.BYTES];
        remote.get(gid);
        try {
            return new End(new QueuePairAddress(lid, queuePairNumber, 0, Gid.of(gid)), bufferAddress, remoteKey);
        } catch (IllegalArgumentException stranger) {
            throw new IOException("the peer's " + stranger.getMessage(), stranger);
        }
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
