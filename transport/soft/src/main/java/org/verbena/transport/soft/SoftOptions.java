package org.verbena.transport.soft;

import java.util.function.Consumer;
import org.verbena.transport.spi.OptionProperties;

/**
 * The options of the software provider. The provider that {@link java.util.ServiceLoader} finds reads them from system
 * properties named {@code org.verbena.soft.} plus the component's name; {@link #with} changes some of them.
 *
 * @param crc whether to request CRC32C on every FPDU; it is used if either side requests it. TCP's own checksum is
 *     weak, but within one host or on a link with its own checksum a CRC only costs time
 * @param mpaRevision 2 negotiates read depths, lets the accepting side send first and detects the peer's features; 1 is
 *     for peers that do not support 2
 * @param peerToPeer whether a connect requests that the accepting side may send first; needs revision 2. Without it
 *     atomics and immediate data are not available
 * @param handshakeTimeoutMillis how long a client may take to send its request after connecting, and the program to
 *     accept or reject it, 1 or more
 * @param maxHandshakes connections of one listener that are not accepted yet, 1 or more. Beyond that, the oldest one
 *     without a complete request is dropped
 * @param maxHandshakesPerAddress how many of them one address may have while others want to connect, 1 or more: an
 *     address with more loses its own oldest. IPv6 addresses count by their /64 network
 * @param wrongKeysPerSecond sustained rate of wrong keys (STags) from one address that has no further consequences, up
 *     to 1000. New connections of an address above it are limited to the same rate; 0 for no limit
 * @param stallTimeoutMillis how long a peer that owes something (the rest of a message, a response, room in its receive
 *     window) may be silent, or slower than {@code leastBytesPerSecond}, before the connection is closed, 250 or more;
 *     0 waits forever
 * @param leastBytesPerSecond the rate at which a peer must deliver what it owes, averaged over a stall timeout, 0 or
 *     more; 0 accepts one byte per stall timeout
 * @param maxFpduBytes the largest FPDU to send, 128 to 65540; 0 for the largest possible to this provider, and one TCP
 *     segment to others
 * @param sharedReceiveDepth the depth of a loop's shared receive queue, 1 to 2^20
 * @param io what carries the bytes of connections that are set up
 */
public record SoftOptions(
        boolean crc,
        int mpaRevision,
        boolean peerToPeer,
        int handshakeTimeoutMillis,
        int maxHandshakes,
        int maxHandshakesPerAddress,
        int wrongKeysPerSecond,
        int stallTimeoutMillis,
        int leastBytesPerSecond,
        int maxFpduBytes,
        int sharedReceiveDepth,
        Io io) {

    /** How a loop reads and writes the sockets of its connections. */
    public enum Io {
        /** Netty's NIO: a system call for each read and each write. The default. */
        NIO,
        /** io_uring where it works, otherwise NIO; {@link SoftProvider#description()} says which, and why. */
        AUTO,
        /** Linux's io_uring, for all connections in one system call; the provider is unavailable where it fails. */
        IO_URING
    }

    /**
     * No CRC unless the peer requests it, revision 2, 5 s for the handshake, 4096 handshakes at once, 30 s without
     * progress, 4096 shared receives, NIO.
     */
    public static final SoftOptions DEFAULTS = of(new Values());

    private static final String PREFIX = "org.verbena.soft.";

    /** Checks ranges. */
    public SoftOptions {
        check("mpaRevision", mpaRevision, 1, 2);
        check("handshakeTimeoutMillis", handshakeTimeoutMillis, 1, Integer.MAX_VALUE);
        check("maxHandshakes", maxHandshakes, 1, 1 << 20);
        check("maxHandshakesPerAddress", maxHandshakesPerAddress, 1, 1 << 20);
        check("wrongKeysPerSecond", wrongKeysPerSecond, 0, 1000);
        if (stallTimeoutMillis != 0) {
            check("stallTimeoutMillis", stallTimeoutMillis, 250, Integer.MAX_VALUE);
        }
        check("leastBytesPerSecond", leastBytesPerSecond, 0, 1 << 30);
        if (maxFpduBytes != 0) {
            check("maxFpduBytes", maxFpduBytes, 128, Rdmap.MAX_ULPDU_BYTES + 2 + Rdmap.CRC_BYTES);
        }
        check("sharedReceiveDepth", sharedReceiveDepth, 1, 1 << 20);
    }

    private static void check(String name, int value, int min, int max) {
        if (value < min || value > max) {
            throw new IllegalArgumentException(PREFIX + name + " " + value + " is not within " + min + " to " + max);
        }
    }

    /**
     * The defaults, overridden by system properties such as {@code -Dorg.verbena.soft.crc=true}.
     *
     * @return the options
     * @throws IllegalArgumentException a property is malformed or out of range
     */
    public static SoftOptions ofSystemProperties() {
        return DEFAULTS.with(o -> {
            o.crc = OptionProperties.flag(PREFIX + "crc", o.crc);
            o.mpaRevision = OptionProperties.number(PREFIX + "mpaRevision", o.mpaRevision);
            o.peerToPeer = OptionProperties.flag(PREFIX + "peerToPeer", o.peerToPeer);
            o.handshakeTimeoutMillis =
                    OptionProperties.number(PREFIX + "handshakeTimeoutMillis", o.handshakeTimeoutMillis);
            o.maxHandshakes = OptionProperties.number(PREFIX + "maxHandshakes", o.maxHandshakes);
            o.maxHandshakesPerAddress =
                    OptionProperties.number(PREFIX + "maxHandshakesPerAddress", o.maxHandshakesPerAddress);
            o.wrongKeysPerSecond = OptionProperties.number(PREFIX + "wrongKeysPerSecond", o.wrongKeysPerSecond);
            o.stallTimeoutMillis = OptionProperties.number(PREFIX + "stallTimeoutMillis", o.stallTimeoutMillis);
            o.leastBytesPerSecond = OptionProperties.number(PREFIX + "leastBytesPerSecond", o.leastBytesPerSecond);
            o.maxFpduBytes = OptionProperties.number(PREFIX + "maxFpduBytes", o.maxFpduBytes);
            o.sharedReceiveDepth = OptionProperties.number(PREFIX + "sharedReceiveDepth", o.sharedReceiveDepth);
            o.io = ioOfProperty(o.io);
        });
    }

    private static Io ioOfProperty(Io otherwise) {
        String value = System.getProperty(PREFIX + "io");
        if (value == null) {
            return otherwise;
        }
        return switch (value) {
            case "auto" -> Io.AUTO;
            case "nio" -> Io.NIO;
            case "io_uring" -> Io.IO_URING;
            default -> throw new IllegalArgumentException(PREFIX + "io is '" + value + "'; give nio, io_uring or auto");
        };
    }

    /**
     * These options with some of them changed: {@code with(o -> o.crc = value)}.
     *
     * @param change is given a copy, and sets fields, which have the components' names
     * @return the changed copy
     * @throws IllegalArgumentException a value is out of its range
     */
    public SoftOptions with(Consumer<Values> change) {
        Values values = new Values();
        values.crc = crc;
        values.mpaRevision = mpaRevision;
        values.peerToPeer = peerToPeer;
        values.handshakeTimeoutMillis = handshakeTimeoutMillis;
        values.maxHandshakes = maxHandshakes;
        values.maxHandshakesPerAddress = maxHandshakesPerAddress;
        values.wrongKeysPerSecond = wrongKeysPerSecond;
        values.stallTimeoutMillis = stallTimeoutMillis;
        values.leastBytesPerSecond = leastBytesPerSecond;
        values.maxFpduBytes = maxFpduBytes;
        values.sharedReceiveDepth = sharedReceiveDepth;
        values.io = io;
        change.accept(values);
        return of(values);
    }

    private static SoftOptions of(Values values) {
        return new SoftOptions(
                values.crc,
                values.mpaRevision,
                values.peerToPeer,
                values.handshakeTimeoutMillis,
                values.maxHandshakes,
                values.maxHandshakesPerAddress,
                values.wrongKeysPerSecond,
                values.stallTimeoutMillis,
                values.leastBytesPerSecond,
                values.maxFpduBytes,
                values.sharedReceiveDepth,
                values.io);
    }

    /** Fields that have the components' names, and the defaults. */
    @SuppressWarnings("doclint:missing") // the components have it
    public static final class Values {
        public boolean crc = false;
        public int mpaRevision = 2;
        public boolean peerToPeer = true;
        public int handshakeTimeoutMillis = 5_000;
        public int maxHandshakes = 4096;
        public int maxHandshakesPerAddress = 1024;
        public int wrongKeysPerSecond = 4;
        public int stallTimeoutMillis = 30_000;
        public int leastBytesPerSecond = 1024;
        public int maxFpduBytes = 0;
        public int sharedReceiveDepth = 4096;
        public Io io = Io.NIO;

        private Values() {}
    }
}
