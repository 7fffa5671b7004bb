package org.verbena.cm;

import java.util.HexFormat;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.verbena.verbs.address.Gid;

/**
 * The address of a queue pair, which a peer needs to connect to it without a connection manager.
 *
 * @param lid of the port; 0 on RoCE
 * @param queuePairNumber 24 bits
 * @param packetSequenceNumber the first one it will send with, 24 bits; random, so that stray packets of an older
 *     connection are recognised
 * @param gid of the port; zero without a global route
 */
public record QueuePairAddress(int lid, int queuePairNumber, int packetSequenceNumber, Gid gid) {
    /** As {@code ibv_rc_pingpong} and similar programs write it, with the zero byte that ends it in C. */
    static final int WIRE_BYTES = "0000:000000:000000:00000000000000000000000000000000".length() + 1;

    private static final Pattern WIRE = Pattern.compile("([0-9a-f]+):([0-9a-f]+):([0-9a-f]+):([0-9a-f]{32})");
    private static final int MAX_24_BITS = 0xffffff;

    /** Checks the ranges. */
    public QueuePairAddress {
        requireRange("lid", lid, 0xffff);
        requireRange("queuePairNumber", queuePairNumber, MAX_24_BITS);
        requireRange("packetSequenceNumber", packetSequenceNumber, MAX_24_BITS);
    }

    private static void requireRange(String name, int value, int max) {
        if (value < 0 || value > max) {
            throw new IllegalArgumentException(name + " is " + value + ", but must be 0 to " + max);
        }
    }

    /**
     * Writes it as rdma-core's ping-pong programs do.
     *
     * @return {@code lid:qpn:psn:gid} in hexadecimal
     */
    public String toWire() {
        return "%04x:%06x:%06x:%s"
                .formatted(
                        lid,
                        queuePairNumber,
                        packetSequenceNumber,
                        HexFormat.of().formatHex(gid.toBytes()));
    }

    /**
     * Reads what {@link #toWire} writes.
     *
     * @param text four hexadecimal fields
     * @return the address
     * @throws IllegalArgumentException if it is something else
     */
    public static QueuePairAddress ofWire(String text) {
        Matcher fields = WIRE.matcher(text);
        if (!fields.matches()) {
            throw new IllegalArgumentException(
                    "the peer sent '" + text + "' instead of lid:qpn:psn:gid; is it a ping-pong program?");
        }
        return new QueuePairAddress(
                Integer.parseInt(fields.group(1), 16),
                Integer.parseInt(fields.group(2), 16),
                Integer.parseInt(fields.group(3), 16),
                Gid.of(HexFormat.of().parseHex(fields.group(4))));
    }
}
