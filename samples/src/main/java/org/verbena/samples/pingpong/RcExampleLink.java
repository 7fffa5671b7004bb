package org.verbena.samples.pingpong;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;
import org.verbena.samples.command.CommandFailure;
import org.verbena.verbs.address.Gid;

/**
 * What the two ends of RDMA_RC_example tell each other over TCP: once, where their queue pairs and buffers are, and
 * later a byte at each point that both have to reach.
 */
final class RcExampleLink implements AutoCloseable {
    /**
     * C's {@code cm_con_data_t}, packed and in network order.
     *
     * @param address of the buffer
     * @param remoteKey of the buffer
     * @param queuePairNumber 24 bits
     * @param lid of the port; 0 on Ethernet
     * @param gid of the port; zero without one
     */
    record ConnectionData(long address, int remoteKey, int queuePairNumber, int lid, Gid gid) {
        static final int BYTES = 34;

        private static final int LID_BITS = 0xffff;

        byte[] encode() {
            return ByteBuffer.allocate(BYTES)
                    .putLong(address)
                    .putInt(remoteKey)
                    .putInt(queuePairNumber)
                    .putShort((short) lid)
                    .put(gid.toBytes())
                    .array();
        }

        static ConnectionData decode(byte[] bytes) {
            ByteBuffer from = ByteBuffer.wrap(bytes);
            long address = from.getLong();
            int remoteKey = from.getInt();
            int number = from.getInt();
            int lid = from.getShort() & LID_BITS;
            byte[] gid = new byte[from.remaining()];
            from.get(gid);
            return new ConnectionData(address, remoteKey, number, lid, Gid.of(gid));
        }
    }

    private final Socket socket;
    private final DataInputStream in;
    private final DataOutputStream out;

    private RcExampleLink(Socket socket, int answerMillis) throws IOException {
        this.socket = socket;
        socket.setTcpNoDelay(true);
        socket.setSoTimeout(answerMillis);
        in = new DataInputStream(socket.getInputStream());
        out = new DataOutputStream(socket.getOutputStream());
    }

    /**
     * Meets the other end.
     *
     * @param host the server; null to be it, and to wait for a client as long as it takes
     * @param answerMillis how long to wait for the connection, and for each answer
     */
    static RcExampleLink open(@Nullable String host, int port, int answerMillis) throws IOException {
        if (host == null) {
            try (ServerSocket listener = new ServerSocket(port)) {
                return new RcExampleLink(listener.accept(), answerMillis);
            }
        }
        Socket socket = new Socket();
        try {
            socket.connect(new InetSocketAddress(host, port), answerMillis);
            return new RcExampleLink(socket, answerMillis);
        } catch (IOException unreachable) {
            socket.close();
            throw new CommandFailure(
                    "cannot exchange addresses with " + host + ":" + port + ": " + unreachable.getMessage(),
                    unreachable);
        }
    }

    /** Tells the peer, and is told. */
    ConnectionData exchange(ConnectionData local) throws IOException {
        out.write(local.encode());
        out.flush();
        byte[] remote = in.readNBytes(ConnectionData.BYTES);
        if (remote.length < ConnectionData.BYTES) {
            throw new CommandFailure("the peer closed the connection after " + remote.length + " of "
                    + ConnectionData.BYTES + " bytes; its own output says why");
        }
        return ConnectionData.decode(remote);
    }

    /**
     * Waits until the peer is at the same point.
     *
     * @param point what this end sends; whatever comes is not looked at, as in C
     */
    void synchronize(char point) throws IOException {
        out.writeByte(point);
        out.flush();
        if (in.read() < 0) {
            throw new CommandFailure(
                    "the peer closed the connection before point " + point + "; its own output says why");
        }
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}
