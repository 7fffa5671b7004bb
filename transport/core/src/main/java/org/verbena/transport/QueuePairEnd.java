package org.verbena.transport;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HexFormat;

/**
 * One end of a connection made by hand: everything that the peer needs to connect its queue pair to this one.
 *
 * @param queuePairNumber of the queue pair, 24 bits
 * @param packetSequenceNumber of the first packet that it will send, 24 bits; random, so that stray packets of an older
 *     connection are recognised
 * @param lid of its port, 16 bits; 0 on RoCE
 * @param gidPrefix the first 8 bytes of its port's GID; the GID is 0 without a global route
 * @param gidInterface the last 8 bytes of the GID
 * @param mtuBytes the longest payload of a packet: 256, 512, 1024, 2048 or 4096. The connection uses the smaller one of
 *     both ends
 * @param readDepth how many reads and atomics of the peer it serves at a time, 0 to 255
 * @param privateData what else the peer must know, up to {@link #GREATEST_PRIVATE_DATA_BYTES}; copied. The message
 *     protocol needs it, framing RAW does not
 */
public record QueuePairEnd(
        int queuePairNumber,
        int packetSequenceNumber,
        int lid,
        long gidPrefix,
        long gidInterface,
        int mtuBytes,
        int readDepth,
        byte[] privateData) {

    /**
     * The most private data that any provider could carry, in bytes: an MPA frame of iWARP (RFC 5044, 7.1.1), setup
     * data included.
     */
    public static final int GREATEST_PRIVATE_DATA_BYTES = 512;

    /** The length of {@link #toBytes()} without private data. */
    public static final int LEAST_BYTES = 40;

    /** The length of the longest {@link #toBytes()}. */
    public static final int MOST_BYTES = LEAST_BYTES + GREATEST_PRIVATE_DATA_BYTES;

    /** The length of a GID. */
    public static final int GID_BYTES = 16;

    /** "VbQP": the first bytes of {@link #toBytes()}. */
    private static final int MAGIC = 0x56625150;

    private static final int VERSION = 1;
    private static final int MAX_24_BITS = 0xffffff;
    private static final int MIN_MTU_BYTES = 256;
    private static final int MAX_MTU_BYTES = 4096;

    /** Checks ranges and copies the private data. */
    public QueuePairEnd {
        check("queuePairNumber", queuePairNumber, MAX_24_BITS);
        check("packetSequenceNumber", packetSequenceNumber, MAX_24_BITS);
        check("lid", lid, 0xffff);
        check("readDepth", readDepth, 255);
        if (!isMtu(mtuBytes)) {
            throw new IllegalArgumentException("mtuBytes " + mtuBytes + " is not 256, 512, 1024, 2048 or 4096");
        }
        check("the length of the private data", privateData.length, GREATEST_PRIVATE_DATA_BYTES);
        privateData = privateData.clone();
    }

    private static void check(String name, int value, int max) {
        if (value < 0 || value > max) {
            throw new IllegalArgumentException(name + " " + value + " is not within 0 to " + max);
        }
    }

    /** Whether queue pairs can have this MTU. */
    static boolean isMtu(int bytes) {
        return bytes >= MIN_MTU_BYTES && bytes <= MAX_MTU_BYTES && Integer.bitCount(bytes) == 1;
    }

    /**
     * The private data.
     *
     * @return a copy
     */
    @Override
    public byte[] privateData() {
        return privateData.clone();
    }

    /**
     * The GID.
     *
     * @return 16 bytes, as in an IPv6 address
     */
    public byte[] gid() {
        return ByteBuffer.allocate(GID_BYTES)
                .putLong(gidPrefix)
                .putLong(gidInterface)
                .array();
    }

    /**
     * The same end with another first packet sequence number.
     *
     * @param number its packet sequence number
     * @return a copy
     */
    public QueuePairEnd withPacketSequenceNumber(int number) {
        return new QueuePairEnd(
                queuePairNumber, number, lid, gidPrefix, gidInterface, mtuBytes, readDepth, privateData);
    }

    /**
     * The same end with another packet size.
     *
     * @param bytes the longest payload of a packet
     * @return a copy
     */
    public QueuePairEnd withMtuBytes(int bytes) {
        return new QueuePairEnd(
                queuePairNumber, packetSequenceNumber, lid, gidPrefix, gidInterface, bytes, readDepth, privateData);
    }

    /**
     * Encodes it for the peer, for exchanges that have no format of their own.
     *
     * @return {@value #LEAST_BYTES} bytes and the private data, all in network byte order: "VbQP", version 1, a zero
     *     byte and 16 bits of reads; 32 bits each of queue pair and packet sequence number; 16 bits each of LID and
     *     packet size; GID; 32 bits of the private data's length; private data
     */
    public byte[] toBytes() {
        return ByteBuffer.allocate(LEAST_BYTES + privateData.length)
                .putInt(MAGIC)
                .put((byte) VERSION)
                .put((byte) 0)
                .putShort((short) readDepth)
                .putInt(queuePairNumber)
                .putInt(packetSequenceNumber)
                .putShort((short) lid)
                .putShort((short) mtuBytes)
                .putLong(gidPrefix)
                .putLong(gidInterface)
                .putInt(privateData.length)
                .put(privateData)
                .array();
    }

    /**
     * Returns how many bytes of private data follow the first {@value #LEAST_BYTES} bytes of {@link #toBytes()}.
     *
     * @param head the first {@value #LEAST_BYTES} bytes
     * @return 0 to {@link #GREATEST_PRIVATE_DATA_BYTES}
     * @throws IllegalArgumentException they are something else
     */
    public static int privateDataBytes(byte[] head) {
        if (head.length < LEAST_BYTES) {
            throw new IllegalArgumentException(
                    "a queue pair's end has " + LEAST_BYTES + " bytes or more, not " + head.length);
        }
        ByteBuffer bytes = ByteBuffer.wrap(head);
        int magic = bytes.getInt();
        int version = bytes.get();
        if (magic != MAGIC || version != VERSION) {
            throw new IllegalArgumentException("not a queue pair's end of version " + VERSION + ": it begins with "
                    + HexFormat.of().formatHex(head, 0, 5));
        }
        int privateBytes = bytes.getInt(LEAST_BYTES - Integer.BYTES);
        check("the length of the private data", privateBytes, GREATEST_PRIVATE_DATA_BYTES);
        return privateBytes;
    }

    /**
     * Reads what {@link #toBytes()} wrote.
     *
     * @param bytes all of it
     * @return the end
     * @throws IllegalArgumentException it is something else
     */
    public static QueuePairEnd ofBytes(byte[] bytes) {
        int privateBytes = privateDataBytes(bytes);
        if (bytes.length != LEAST_BYTES + privateBytes) {
            throw new IllegalArgumentException("a queue pair's end with " + privateBytes + " bytes of private data has "
                    + (LEAST_BYTES + privateBytes) + " bytes, not " + bytes.length);
        }
        ByteBuffer fields = ByteBuffer.wrap(bytes, Integer.BYTES + 2, bytes.length - Integer.BYTES - 2);
        int readDepth = Short.toUnsignedInt(fields.getShort());
        int queuePairNumber = fields.getInt();
        int packetSequenceNumber = fields.getInt();
        int lid = Short.toUnsignedInt(fields.getShort());
        int mtuBytes = Short.toUnsignedInt(fields.getShort());
        long gidPrefix = fields.getLong();
        long gidInterface = fields.getLong();
        return new QueuePairEnd(
                queuePairNumber,
                packetSequenceNumber,
                lid,
                gidPrefix,
                gidInterface,
                mtuBytes,
                readDepth,
                Arrays.copyOfRange(bytes, LEAST_BYTES, bytes.length));
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof QueuePairEnd end && Arrays.equals(toBytes(), end.toBytes());
    }

    @Override
    public int hashCode() {
        return Arrays.hashCode(toBytes());
    }

    @Override
    public String toString() {
        return "queue pair %06x, first packet %06x, LID %04x, GID %s, packets of %d bytes, %d reads"
                .formatted(
                        queuePairNumber,
                        packetSequenceNumber,
                        lid,
                        HexFormat.of().formatHex(gid()),
                        mtuBytes,
                        readDepth);
    }
}
