package org.verbena.api.queuepair;

import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.OutputStream;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.verbena.transport.QueuePairEnd;

/** The formats of {@link TcpQueuePairExchange} on its socket. Blocks; one thread at a time. */
final class ExchangeWire {
    /** As {@code ibv_rc_pingpong} has it: LID, queue pair number, packet sequence number, GID. */
    private static final Pattern PING_PONG =
            Pattern.compile("([0-9a-f]{4}):([0-9a-f]{6}):([0-9a-f]{6}):([0-9a-f]{32})");

    private static final int PING_PONG_BYTES = 4 + 1 + 6 + 1 + 6 + 1 + 32;

    /** C's {@code cm_con_data_t}, packed: address, key, queue pair number, LID, GID. */
    private static final int EXAMPLE_BYTES = Long.BYTES + 2 * Integer.BYTES + Short.BYTES + QueuePairEnd.GID_BYTES;

    private static final int HEX = 16;

    /** How much of garbage a message shows. */
    private static final int SHOWN_BYTES = 60;

    /** The numbers 0 and 1 are of queue pairs for management. */
    private static final int LEAST_QUEUE_PAIR_NUMBER = 2;

    /**
     * What a peer tells.
     *
     * @param end its queue pair
     * @param address of its buffer, in the example's format; else 0
     * @param key of its buffer, in the example's format; else 0
     */
    record Told(QueuePairEnd end, long address, int key) {
        Told(QueuePairEnd end) {
            this(end, 0, 0);
        }
    }

    private final DataInputStream in;
    private final OutputStream out;

    ExchangeWire(Socket socket) throws IOException {
        in = new DataInputStream(socket.getInputStream());
        out = socket.getOutputStream();
    }

    void write(byte[] bytes) throws IOException {
        out.write(bytes);
        out.flush();
    }

    /** With C's zero byte. */
    void writeText(String text) throws IOException {
        write((text + '\0').getBytes(StandardCharsets.US_ASCII));
    }

    Told readEnd() throws IOException {
        byte[] head = read(QueuePairEnd.LEAST_BYTES);
        byte[] rest = read(QueuePairEnd.privateDataBytes(head));
        byte[] all = Arrays.copyOf(head, head.length + rest.length);
        System.arraycopy(rest, 0, all, head.length, rest.length);
        return new Told(QueuePairEnd.ofBytes(all));
    }

    static String textOf(QueuePairEnd end) {
        return "%04x:%06x:%06x:%s"
                .formatted(
                        end.lid(),
                        end.queuePairNumber(),
                        end.packetSequenceNumber(),
                        HexFormat.of().formatHex(end.gid()));
    }

    Told readPingPong(int mtuBytes, int reads) throws IOException {
        String text = readText(PING_PONG_BYTES);
        Matcher fields = PING_PONG.matcher(text);
        if (!fields.matches()) {
            throw new IOException(
                    "the peer sent '" + printable(text) + "' instead of lid:qpn:psn:gid; is it ibv_rc_pingpong?");
        }
        ByteBuffer gid = ByteBuffer.wrap(HexFormat.of().parseHex(fields.group(4)));
        return new Told(checked(new QueuePairEnd(
                Integer.parseInt(fields.group(2), HEX),
                Integer.parseInt(fields.group(3), HEX),
                Integer.parseInt(fields.group(1), HEX),
                gid.getLong(),
                gid.getLong(),
                mtuBytes,
                reads,
                new byte[0])));
    }

    static byte[] exampleOf(QueuePairEnd end, long address, int key) {
        return ByteBuffer.allocate(EXAMPLE_BYTES)
                .putLong(address)
                .putInt(key)
                .putInt(end.queuePairNumber())
                .putShort((short) end.lid())
                .put(end.gid())
                .array();
    }

    Told readExample(int mtuBytes, int reads) throws IOException {
        ByteBuffer fields = ByteBuffer.wrap(read(EXAMPLE_BYTES));
        long address = fields.getLong();
        int key = fields.getInt();
        int queuePairNumber = fields.getInt();
        int lid = Short.toUnsignedInt(fields.getShort());
        return new Told(
                checked(new QueuePairEnd(
                        queuePairNumber, 0, lid, fields.getLong(), fields.getLong(), mtuBytes, reads, new byte[0])),
                address,
                key);
    }

    /** The formats of the C programs have nothing else by which a peer could be told from a stranger. */
    private static QueuePairEnd checked(QueuePairEnd end) throws IOException {
        if (end.queuePairNumber() < LEAST_QUEUE_PAIR_NUMBER
                || (end.lid() == 0 && end.gidPrefix() == 0 && end.gidInterface() == 0)) {
            throw new IOException("the peer sent queue pair " + end.queuePairNumber() + " at LID " + end.lid()
                    + " and GID " + HexFormat.of().formatHex(end.gid())
                    + ", which no queue pair can be connected to");
        }
        return end;
    }

    void expect(byte wanted, String meaning) throws IOException {
        byte came = read(1)[0];
        if (came != wanted) {
            throw new IOException("the peer sent a byte of " + came + " instead of saying " + meaning + ", " + wanted);
        }
    }

    void expectText(String wanted) throws IOException {
        String text = readText(wanted.length());
        if (!text.equals(wanted)) {
            throw new IOException("the peer sent '" + printable(text) + "' instead of '" + wanted + "'");
        }
    }

    /** Without C's zero byte, which must be there. */
    private String readText(int length) throws IOException {
        String text = new String(read(length + 1), StandardCharsets.US_ASCII);
        return text.charAt(length) == '\0' ? text.substring(0, length) : text;
    }

    private static String printable(String text) {
        String shown = text.length() > SHOWN_BYTES ? text.substring(0, SHOWN_BYTES) : text;
        return shown.replaceAll("[^ -~]", "?");
    }

    private byte[] read(int count) throws IOException {
        byte[] bytes = in.readNBytes(count);
        if (bytes.length == 0 && count > 0) {
            throw new EOFException("the peer closed the connection; its own output says why");
        }
        if (bytes.length < count) {
            throw new IOException("the peer closed the connection after " + bytes.length + " of " + count
                    + " bytes; its own output says why");
        }
        return bytes;
    }
}
