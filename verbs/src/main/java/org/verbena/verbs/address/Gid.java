package org.verbena.verbs.address;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.ByteBuffer;

/**
 * A global identifier: 128 bits in the form of an IPv6 address. RoCE carries IPv4 addresses as {@code ::ffff:a.b.c.d}.
 *
 * <p>Source: ibv_query_gid(3)
 *
 * @param subnetPrefix the upper 64 bits, in host order
 * @param interfaceId the lower 64 bits, in host order
 */
public record Gid(long subnetPrefix, long interfaceId) {
    /** Its length on the wire, in bytes. */
    public static final int BYTES = 16;

    /** The GID of an empty entry. */
    public static final Gid ZERO = new Gid(0, 0);

    /**
     * Reads one in network order.
     *
     * @param bytes 16 of them
     * @return the GID
     */
    public static Gid of(byte[] bytes) {
        if (bytes.length != BYTES) {
            throw new IllegalArgumentException("a GID has " + BYTES + " bytes, not " + bytes.length);
        }
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        return new Gid(buffer.getLong(), buffer.getLong());
    }

    /**
     * Writes it in network order.
     *
     * @return 16 bytes
     */
    public byte[] toBytes() {
        return ByteBuffer.allocate(BYTES)
                .putLong(subnetPrefix)
                .putLong(interfaceId)
                .array();
    }

    /**
     * Whether the entry it came from is empty.
     *
     * @return true if all bits are 0
     */
    public boolean isZero() {
        return subnetPrefix == 0 && interfaceId == 0;
    }

    /**
     * The address it stands for.
     *
     * @return an IPv4 address if it is a mapped one, else an IPv6 address
     */
    public InetAddress toInetAddress() {
        try {
            return InetAddress.getByAddress(toBytes());
        } catch (UnknownHostException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    /**
     * As {@code ibv_devinfo} prints it: eight groups of four hexadecimal digits.
     *
     * @return {@code fe80:0000:0000:0000:0204:56ff:fe78:9abc}
     */
    @Override
    public String toString() {
        byte[] bytes = toBytes();
        StringBuilder text = new StringBuilder(39);
        for (int i = 0; i < BYTES; i += 2) {
            text.append(i == 0 ? "" : ":").append(String.format("%02x%02x", bytes[i], bytes[i + 1]));
        }
        return text.toString();
    }
}
