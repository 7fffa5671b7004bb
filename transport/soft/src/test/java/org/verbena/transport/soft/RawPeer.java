package org.verbena.transport.soft;

import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.zip.CRC32C;
import org.verbena.transport.spi.Patience;

/**
 * The other end of an iWARP connection, made of nothing but a blocking socket and numbers out of the RFCs: it can send
 * what no endpoint would. Shares no code with what it tests.
 */
final class RawPeer implements AutoCloseable {
    static final int WRITE = 0xc140;
    static final int READ_REQUEST = 0x4141;
    static final int READ_RESPONSE = 0xc142;
    static final int SEND = 0x4143;
    static final int SEND_INVALIDATE = 0x4144;
    static final int TERMINATE = 0x4147;
    static final int IMMEDIATE = 0x4148;
    static final int ATOMIC_REQUEST = 0x414a;
    static final int ATOMIC_RESPONSE = 0x414b;

    /** Without the L bit: more of the message follows. */
    static final int MORE = 0x4000;

    /** How long it waits for bytes, and to be connected. */
    static final int PATIENCE_MILLIS = (int) Patience.LIMIT.toMillis();

    private final Socket socket;
    private final DataInputStream in;
    private boolean crc;

    RawPeer(Socket socket) throws IOException {
        this.socket = socket;
        socket.setTcpNoDelay(true);
        socket.setSoTimeout(PATIENCE_MILLIS);
        in = new DataInputStream(socket.getInputStream());
    }

    static RawPeer connect(InetSocketAddress address) throws IOException {
        Socket socket = new Socket();
        socket.connect(address, PATIENCE_MILLIS);
        return new RawPeer(socket);
    }

    /** What came in one FPDU: the ULPDU, its control field, and whether the CRC field fits the CRC. */
    record Segment(byte[] ulpdu, int control, boolean crcFits) {
        ByteBuffer header() {
            return ByteBuffer.wrap(ulpdu);
        }

        String hex() {
            return HexFormat.of().formatHex(ulpdu);
        }
    }

    /** A frame of the startup phase. */
    record Frame(String key, int flags, byte[] privateData) {}

    static byte[] hex(String text) {
        return HexFormat.of().parseHex(text.replaceAll("\\s", ""));
    }

    static byte[] frame(String key, int flags, byte... privateData) {
        return ByteBuffer.allocate(20 + privateData.length)
                .put(key.getBytes(StandardCharsets.US_ASCII))
                .putShort((short) flags)
                .putShort((short) privateData.length)
                .put(privateData)
                .array();
    }

    static byte[] request(int flags, byte... privateData) {
        return frame("MPA ID Req Frame", flags, privateData);
    }

    static byte[] reply(int flags, byte... privateData) {
        return frame("MPA ID Rep Frame", flags, privateData);
    }

    /** A peer as siw is: enhanced, no peer-to-peer, 16 reads each way. */
    RawPeer introduce(boolean withCrc) throws IOException {
        send(request(withCrc ? 0x5002 : 0x1002, hex("0010 0010")));
        Frame answer = readFrame();
        if (!answer.key.equals("MPA ID Rep Frame") || (answer.flags & 0x2000) != 0) {
            throw new AssertionError("not accepted: " + answer);
        }
        crc = (answer.flags & 0x4000) != 0;
        return this;
    }

    /** A peer that claims to be of this provider's kind: has atomics and immediate data. */
    RawPeer introduceAsOurs(boolean withCrc) throws IOException {
        send(request(withCrc ? 0x5002 : 0x1002, hex("c010 c010")));
        Frame answer = readFrame();
        if (answer.privateData.length < 12) {
            throw new AssertionError("no token in the reply: " + answer);
        }
        crc = (answer.flags & 0x4000) != 0;
        byte[] token = java.util.Arrays.copyOfRange(
                answer.privateData, answer.privateData.length - 8, answer.privateData.length);
        ByteBuffer word = ByteBuffer.wrap(token);
        int magic = word.getInt();
        send(tagged(WRITE, magic, word.getInt() & 0xffffffffL));
        return this;
    }

    void setCrc(boolean on) {
        crc = on;
    }

    void send(byte[]... parts) throws IOException {
        int length = 0;
        for (byte[] part : parts) {
            length += part.length;
        }
        ByteBuffer all = ByteBuffer.allocate(length);
        for (byte[] part : parts) {
            all.put(part);
        }
        socket.getOutputStream().write(all.array());
    }

    /** Puts length, pad and CRC around a ULPDU. */
    byte[] fpdu(byte[] ulpdu) {
        return fpdu(ulpdu, ulpdu.length);
    }

    byte[] fpdu(byte[] ulpdu, int claimedLength) {
        int pad = -(2 + ulpdu.length) & 3;
        ByteBuffer out = ByteBuffer.allocate(2 + ulpdu.length + pad + 4);
        out.putShort((short) claimedLength).put(ulpdu).position(2 + ulpdu.length + pad);
        if (crc) {
            CRC32C sum = new CRC32C();
            sum.update(out.array(), 0, out.position());
            out.order(ByteOrder.LITTLE_ENDIAN).putInt((int) sum.getValue());
        }
        return out.array();
    }

    byte[] tagged(int control, int stag, long offset, byte... payload) {
        return fpdu(ByteBuffer.allocate(14 + payload.length)
                .putShort((short) control)
                .putInt(stag)
                .putLong(offset)
                .put(payload)
                .array());
    }

    byte[] untagged(int control, int queue, int number, int offset, byte... payload) {
        return untagged(control, 0, queue, number, offset, payload);
    }

    byte[] untagged(int control, int key, int queue, int number, int offset, byte[] payload) {
        return fpdu(ByteBuffer.allocate(18 + payload.length)
                .putShort((short) control)
                .putInt(key)
                .putInt(queue)
                .putInt(number)
                .putInt(offset)
                .put(payload)
                .array());
    }

    byte[] readRequest(int number, int sinkStag, long sinkOffset, int size, int sourceStag, long sourceOffset) {
        return untagged(
                READ_REQUEST,
                1,
                number,
                0,
                ByteBuffer.allocate(28)
                        .putInt(sinkStag)
                        .putLong(sinkOffset)
                        .putInt(size)
                        .putInt(sourceStag)
                        .putLong(sourceOffset)
                        .array());
    }

    byte[] atomicRequest(int number, int operation, int stag, long offset, long value, long mask, long compare) {
        return untagged(
                ATOMIC_REQUEST,
                1,
                number,
                0,
                ByteBuffer.allocate(52)
                        .putInt(operation)
                        .putInt(number)
                        .putInt(stag)
                        .putLong(offset)
                        .putLong(value)
                        .putLong(mask)
                        .putLong(compare)
                        .putLong(-1)
                        .array());
    }

    Frame readFrame() throws IOException {
        byte[] key = new byte[16];
        in.readFully(key);
        int flags = in.readUnsignedShort();
        byte[] privateData = new byte[in.readUnsignedShort()];
        in.readFully(privateData);
        return new Frame(new String(key, StandardCharsets.US_ASCII), flags, privateData);
    }

    byte[] readBytes(int count) throws IOException {
        byte[] bytes = new byte[count];
        in.readFully(bytes);
        return bytes;
    }

    Segment readSegment() throws IOException {
        int length = in.readUnsignedShort();
        byte[] ulpdu = readBytes(length);
        byte[] pad = readBytes(-(2 + length) & 3);
        int found = Integer.reverseBytes(in.readInt());
        int expected = 0;
        if (crc) {
            CRC32C sum = new CRC32C();
            sum.update(new byte[] {(byte) (length >>> 8), (byte) length});
            sum.update(ulpdu);
            sum.update(pad);
            expected = (int) sum.getValue();
        }
        return new Segment(ulpdu, ByteBuffer.wrap(ulpdu).getShort() & 0xffff, found == expected);
    }

    /** Reads up to a Terminate message; gives layer, type and code as one number. */
    int readTerminate() throws IOException {
        while (true) {
            Segment segment = readSegment();
            if (segment.control == TERMINATE) {
                ByteBuffer header = segment.header();
                if (header.getInt(6) != 2 || header.getInt(10) != 1 || header.getInt(14) != 0 || !segment.crcFits) {
                    throw new AssertionError("a malformed Terminate message: " + segment.hex());
                }
                return header.getShort(18) & 0xffff;
            }
        }
    }

    /** Whether the stream ends here, by FIN or reset, without another byte. */
    boolean isEnded() throws IOException {
        try {
            return in.read() < 0;
        } catch (SocketException | EOFException e) {
            return true;
        }
    }

    void finish() throws IOException {
        socket.shutdownOutput();
    }

    Socket socket() {
        return socket;
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}
