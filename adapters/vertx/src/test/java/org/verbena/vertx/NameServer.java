package org.verbena.vertx;

import java.io.Closeable;
import java.io.IOException;
import java.net.DatagramPacket;
import java.net.DatagramSocket;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/** Knows one name, and says no to all others (RFC 1035). */
final class NameServer implements Closeable {
    /** The name that it knows. */
    static final String NAME = "peer.verbena.test";

    private static final int HEADER_BYTES = 12;
    private static final short ANSWER = (short) 0x8580; // authoritative, recursion as asked for
    private static final short NO_SUCH_NAME = ANSWER | 3;
    private static final short ADDRESS = 1;
    private static final byte[] ENCODED = encoded();

    private final DatagramSocket socket = new DatagramSocket(0, InetAddress.getLoopbackAddress());
    private final InetAddress address;

    NameServer(String address) throws IOException {
        this.address = InetAddress.getByName(address);
        Thread.ofVirtual().start(this::serve);
    }

    int port() {
        return socket.getLocalPort();
    }

    private static byte[] encoded() {
        ByteBuffer name = ByteBuffer.allocate(NAME.length() + 2);
        for (String label : NAME.split("\\.")) {
            name.put((byte) label.length()).put(label.getBytes(StandardCharsets.US_ASCII));
        }
        return name.put((byte) 0).array();
    }

    private void serve() {
        DatagramPacket packet = new DatagramPacket(new byte[4096], 4096);
        try {
            while (true) {
                socket.receive(packet);
                ByteBuffer query = ByteBuffer.wrap(packet.getData(), 0, packet.getLength());
                ByteBuffer answer = answer(query);
                socket.send(new DatagramPacket(answer.array(), answer.position(), packet.getSocketAddress()));
            }
        } catch (IOException closed) {
            assert socket.isClosed() : closed;
        }
    }

    private ByteBuffer answer(ByteBuffer query) {
        short id = query.getShort(0);
        int nameEnd = HEADER_BYTES;
        while (query.get(nameEnd) != 0) {
            nameEnd += 1 + query.get(nameEnd);
        }
        nameEnd++;
        byte[] name = new byte[nameEnd - HEADER_BYTES];
        query.get(HEADER_BYTES, name);
        boolean known = new String(name, StandardCharsets.US_ASCII)
                .equalsIgnoreCase(new String(ENCODED, StandardCharsets.US_ASCII));
        short type = query.getShort(nameEnd);
        boolean found = known && type == ADDRESS;
        ByteBuffer answer = ByteBuffer.allocate(512)
                .putShort(id)
                .putShort(known ? ANSWER : NO_SUCH_NAME)
                .putShort((short) 1)
                .putShort((short) (found ? 1 : 0))
                .putInt(0)
                .put(name)
                .putShort(type)
                .putShort((short) 1);
        if (found) {
            byte[] bytes = address.getAddress();
            answer.putShort((short) (0xc000 | HEADER_BYTES)) // the name as in the question
                    .putShort(ADDRESS)
                    .putShort((short) 1)
                    .putInt(60)
                    .putShort((short) bytes.length)
                    .put(bytes);
        }
        return answer;
    }

    @Override
    public void close() {
        socket.close();
    }
}
