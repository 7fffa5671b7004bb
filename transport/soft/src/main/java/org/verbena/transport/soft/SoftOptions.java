package org.verbena.transport.soft;

import org.verbena.transport.spi.OptionProperties;

/**
 * How the software provider behaves. The provider that {@link java.util.ServiceLoader} finds takes them from system
 * properties named {@code org.verbena.transport.soft.} and the component's name.
 *
 * @param crc whether to ask for CRC32C over every FPDU; it is used as soon as one side asks. TCP's own checksum is weak, but
 *     on one host or a link that checks itself a CRC is only cost
 * @param mpaRevision 2 negotiates read depths, lets the accepting side speak first and finds out what the peer can do; 1 is for
 *     peers that know no better
 * @param peerToPeer whether a connect asks that the accepting side may speak first; needs revision 2. Without it atomics and
 *     immediate data are not available
 * @param handshakeTimeoutMillis how long a client may take to send its request after connecting, and a user to accept or
 *     reject it, 1 or more
 * @param maxHandshakes connections of one listener that are not accepted yet, 1 or more; more wait in the backlog
 * @param stallTimeoutMillis how long a peer that owes something (the rest of a message, a response, room in its receive
 *     window) may be silent before the connection is given up, 250 or more; 0 waits for ever
 * @param maxFpduBytes the largest FPDU to send; 0 for as large as possible towards this provider, and as fits a TCP segment
 *     towards others; else 128 to 65540
 * @param sharedReceiveDepth how many receives a loop's shared receive queue holds, 1 to 2^20
 */
public record SoftOptions(
        boolean crc,
        int mpaRevision,
        boolean peerToPeer,
        int handshakeTimeoutMillis,
        int maxHandshakes,
        int stallTimeoutMillis,
        int maxFpduBytes,
        int sharedReceiveDepth) {

    /** No CRC unless the peer wants it, revision 2, 5 s to set up, 256 in handshake, 30 s without progress, 4096 shared receives. */
    public static final SoftOptions DEFAULTS = new SoftOptions(false, 2, true, 5_000, 256, 30_000, 0, 4096);

    private static final String PREFIX = "org.verbena.soft.";

    /** Checks ranges. */
    public SoftOptions {
        check("mpaRevision", mpaRevision, 1, 2);
        check("handshakeTimeoutMillis", handshakeTimeoutMillis, 1, Integer.MAX_VALUE);
        check("maxHandshakes", maxHandshakes, 1, 1 << 20);
        if (stallTimeoutMillis != 0) {
            check("stallTimeoutMillis", stallTimeoutMillis, 250, Integer.MAX_VALUE);
        }
        if (maxFpduBytes != 0) {
            check("maxFpduBytes", maxFpduBytes, 128, Rdmap.MAX_ULPDU_BYTES + 2 + Rdmap.CRC_BYTES);
        }
        check("sharedReceiveDepth", sharedReceiveDepth, 1, 1 << 20);
    }

    private static void check(String name, int value, int least, int most) {
        if (value < least || value > most) {
            throw new IllegalArgumentException(PREFIX + name + " " + value + " is not within " + least + " to " + most);
        }
    }

    /**
     * The defaults, changed by system properties such as {@code -Dorg.verbena.transport.soft.crc=true}.
     *
     * @return the options
     * @throws IllegalArgumentException a property is out of range or no number
     */
    public static SoftOptions ofSystemProperties() {
        return new SoftOptions(
                OptionProperties.flag(PREFIX + "crc", DEFAULTS.crc),
                OptionProperties.number(PREFIX + "mpaRevision", DEFAULTS.mpaRevision),
                OptionProperties.flag(PREFIX + "peerToPeer", DEFAULTS.peerToPeer),
                OptionProperties.number(PREFIX + "handshakeTimeoutMillis", DEFAULTS.handshakeTimeoutMillis),
                OptionProperties.number(PREFIX + "maxHandshakes", DEFAULTS.maxHandshakes),
                OptionProperties.number(PREFIX + "stallTimeoutMillis", DEFAULTS.stallTimeoutMillis),
                OptionProperties.number(PREFIX + "maxFpduBytes", DEFAULTS.maxFpduBytes),
                OptionProperties.number(PREFIX + "sharedReceiveDepth", DEFAULTS.sharedReceiveDepth));
    }

    /**
     * These options with or without CRC.
     *
     * @param on whether to ask for CRCs
     * @return a copy
     */
    public SoftOptions withCrc(boolean on) {
        return new SoftOptions(
                on,
                mpaRevision,
                peerToPeer,
                handshakeTimeoutMillis,
                maxHandshakes,
                stallTimeoutMillis,
                maxFpduBytes,
                sharedReceiveDepth);
    }
}
