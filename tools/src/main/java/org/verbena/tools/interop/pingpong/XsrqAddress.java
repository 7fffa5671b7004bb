package org.verbena.tools.interop.pingpong;

import java.util.HexFormat;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.verbena.cm.QueuePairAddress;
import org.verbena.samples.command.CommandFailure;
import org.verbena.verbs.address.Gid;

/**
 * What one side of {@link XsrqPingPong} sends to the other over TCP: two queue pairs, one for each direction, and the
 * shared receive queue that messages are for.
 *
 * @param receiver the queue pair that takes messages
 * @param senderNumber the number of the one that sends them; the rest is the same as for the receiver
 * @param sharedNumber of the shared receive queue
 */
record XsrqAddress(QueuePairAddress receiver, int senderNumber, int sharedNumber) {
    /** As in C, with the final zero byte. */
    static final int WIRE_BYTES = "0000:000000:000000:000000:000000:00000000000000000000000000000000".length() + 1;

    /** C's {@code "%04x:%06x:%06x:%06x:%06x:%32s"}. */
    private static final Pattern WIRE =
            Pattern.compile("([0-9a-f]{4}):([0-9a-f]{6}):([0-9a-f]{6}):([0-9a-f]{6}):([0-9a-f]{6}):([0-9a-f]{32})");

    /** The queue pair that sends. */
    QueuePairAddress sender() {
        return new QueuePairAddress(receiver.lid(), senderNumber, receiver.packetSequenceNumber(), receiver.gid());
    }

    /** As C writes it: {@code lid:receiver:sender:psn:shared:gid} in hexadecimal. */
    String toWire() {
        return String.format(
                Locale.ROOT,
                "%04x:%06x:%06x:%06x:%06x:%s",
                receiver.lid(),
                receiver.queuePairNumber(),
                senderNumber,
                receiver.packetSequenceNumber(),
                sharedNumber,
                HexFormat.of().formatHex(receiver.gid().toBytes()));
    }

    /** Reads what {@link #toWire} writes. */
    static XsrqAddress ofWire(String text) {
        Matcher fields = WIRE.matcher(text);
        if (!fields.matches()) {
            throw new CommandFailure("the peer sent '" + text
                    + "' instead of lid:qpn:qpn:psn:srqn:gid; is the peer xsrq or ibv_xsrq_pingpong?");
        }
        return new XsrqAddress(
                new QueuePairAddress(
                        hexadecimal(fields, 1),
                        hexadecimal(fields, 2),
                        hexadecimal(fields, 4),
                        Gid.of(HexFormat.of().parseHex(fields.group(6)))),
                hexadecimal(fields, 3),
                hexadecimal(fields, 5));
    }

    private static int hexadecimal(Matcher fields, int group) {
        return Integer.parseInt(fields.group(group), 16);
    }

    /** As C prints it, except for the name of the side. */
    @Override
    public String toString() {
        return String.format(
                Locale.ROOT,
                "LID %04x, QPN RECV %06x SEND %06x, PSN %06x, SRQN %06x, GID %s",
                receiver.lid(),
                receiver.queuePairNumber(),
                senderNumber,
                receiver.packetSequenceNumber(),
                sharedNumber,
                receiver.gid());
    }
}
