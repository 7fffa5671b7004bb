package org.verbena.transport.soft;

import org.verbena.transport.spi.OptionProperties;

/**
 * The options of the software provider. The provider that {@link java.util.ServiceLoader} finds reads them from system
 * properties named {@code org.verbena.soft.} plus the component's name; {@link #toBuilder()} changes some of them.
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
        int sharedReceiveDepth) {

    /**
     * No CRC unless the peer requests it, revision 2, 5 s for the handshake, 4096 handshakes at once, 30 s without
     * progress, 4096 shared receives.
     */
    public static final SoftOptions DEFAULTS = new Builder().build();

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

    private static void check(String name, int value, int least, int most) {
        if (value < least || value > most) {
            throw new IllegalArgumentException(PREFIX + name + " " + value + " is not within " + least + " to " + most);
        }
    }

    /**
     * The defaults, overridden by system properties such as {@code -Dorg.verbena.soft.crc=true}.
     *
     * @return the options
     * @throws IllegalArgumentException a property is malformed or out of range
     */
    public static SoftOptions ofSystemProperties() {
        return new Builder()
                .crc(OptionProperties.flag(PREFIX + "crc", DEFAULTS.crc))
                .mpaRevision(OptionProperties.number(PREFIX + "mpaRevision", DEFAULTS.mpaRevision))
                .peerToPeer(OptionProperties.flag(PREFIX + "peerToPeer", DEFAULTS.peerToPeer))
                .handshakeTimeoutMillis(
                        OptionProperties.number(PREFIX + "handshakeTimeoutMillis", DEFAULTS.handshakeTimeoutMillis))
                .maxHandshakes(OptionProperties.number(PREFIX + "maxHandshakes", DEFAULTS.maxHandshakes))
                .maxHandshakesPerAddress(
                        OptionProperties.number(PREFIX + "maxHandshakesPerAddress", DEFAULTS.maxHandshakesPerAddress))
                .wrongKeysPerSecond(OptionProperties.number(PREFIX + "wrongKeysPerSecond", DEFAULTS.wrongKeysPerSecond))
                .stallTimeoutMillis(OptionProperties.number(PREFIX + "stallTimeoutMillis", DEFAULTS.stallTimeoutMillis))
                .leastBytesPerSecond(
                        OptionProperties.number(PREFIX + "leastBytesPerSecond", DEFAULTS.leastBytesPerSecond))
                .maxFpduBytes(OptionProperties.number(PREFIX + "maxFpduBytes", DEFAULTS.maxFpduBytes))
                .sharedReceiveDepth(OptionProperties.number(PREFIX + "sharedReceiveDepth", DEFAULTS.sharedReceiveDepth))
                .build();
    }

    /**
     * These options with or without CRC.
     *
     * @param on whether to request CRCs
     * @return a copy
     */
    public SoftOptions withCrc(boolean on) {
        return toBuilder().crc(on).build();
    }

    /**
     * Creates a builder from these options.
     *
     * @return a builder with these values
     */
    public Builder toBuilder() {
        return new Builder()
                .crc(crc)
                .mpaRevision(mpaRevision)
                .peerToPeer(peerToPeer)
                .handshakeTimeoutMillis(handshakeTimeoutMillis)
                .maxHandshakes(maxHandshakes)
                .maxHandshakesPerAddress(maxHandshakesPerAddress)
                .wrongKeysPerSecond(wrongKeysPerSecond)
                .stallTimeoutMillis(stallTimeoutMillis)
                .leastBytesPerSecond(leastBytesPerSecond)
                .maxFpduBytes(maxFpduBytes)
                .sharedReceiveDepth(sharedReceiveDepth);
    }

    /** Builds {@link SoftOptions}. */
    public static final class Builder {
        private boolean crc = false;
        private int mpaRevision = 2;
        private boolean peerToPeer = true;
        private int handshakeTimeoutMillis = 5_000;
        private int maxHandshakes = 4096;
        private int maxHandshakesPerAddress = 1024;
        private int wrongKeysPerSecond = 4;
        private int stallTimeoutMillis = 30_000;
        private int leastBytesPerSecond = 1024;
        private int maxFpduBytes = 0;
        private int sharedReceiveDepth = 4096;

        /** Starts with the defaults. */
        public Builder() {}

        /**
         * Sets {@link SoftOptions#crc()}.
         *
         * @param value the new value
         * @return this
         */
        public Builder crc(boolean value) {
            crc = value;
            return this;
        }

        /**
         * Sets {@link SoftOptions#mpaRevision()}.
         *
         * @param value the new value
         * @return this
         */
        public Builder mpaRevision(int value) {
            mpaRevision = value;
            return this;
        }

        /**
         * Sets {@link SoftOptions#peerToPeer()}.
         *
         * @param value the new value
         * @return this
         */
        public Builder peerToPeer(boolean value) {
            peerToPeer = value;
            return this;
        }

        /**
         * Sets {@link SoftOptions#handshakeTimeoutMillis()}.
         *
         * @param value the new value
         * @return this
         */
        public Builder handshakeTimeoutMillis(int value) {
            handshakeTimeoutMillis = value;
            return this;
        }

        /**
         * Sets {@link SoftOptions#maxHandshakes()}.
         *
         * @param value the new value
         * @return this
         */
        public Builder maxHandshakes(int value) {
            maxHandshakes = value;
            return this;
        }

        /**
         * Sets {@link SoftOptions#maxHandshakesPerAddress()}.
         *
         * @param value the new value
         * @return this
         */
        public Builder maxHandshakesPerAddress(int value) {
            maxHandshakesPerAddress = value;
            return this;
        }

        /**
         * Sets {@link SoftOptions#wrongKeysPerSecond()}.
         *
         * @param value the new value
         * @return this
         */
        public Builder wrongKeysPerSecond(int value) {
            wrongKeysPerSecond = value;
            return this;
        }

        /**
         * Sets {@link SoftOptions#stallTimeoutMillis()}.
         *
         * @param value the new value
         * @return this
         */
        public Builder stallTimeoutMillis(int value) {
            stallTimeoutMillis = value;
            return this;
        }

        /**
         * Sets {@link SoftOptions#leastBytesPerSecond()}.
         *
         * @param value the new value
         * @return this
         */
        public Builder leastBytesPerSecond(int value) {
            leastBytesPerSecond = value;
            return this;
        }

        /**
         * Sets {@link SoftOptions#maxFpduBytes()}.
         *
         * @param value the new value
         * @return this
         */
        public Builder maxFpduBytes(int value) {
            maxFpduBytes = value;
            return this;
        }

        /**
         * Sets {@link SoftOptions#sharedReceiveDepth()}.
         *
         * @param value the new value
         * @return this
         */
        public Builder sharedReceiveDepth(int value) {
            sharedReceiveDepth = value;
            return this;
        }

        /**
         * Builds the options.
         *
         * @return the validated options
         * @throws IllegalArgumentException a value is out of range
         */
        public SoftOptions build() {
            return new SoftOptions(
                    crc,
                    mpaRevision,
                    peerToPeer,
                    handshakeTimeoutMillis,
                    maxHandshakes,
                    maxHandshakesPerAddress,
                    wrongKeysPerSecond,
                    stallTimeoutMillis,
                    leastBytesPerSecond,
                    maxFpduBytes,
                    sharedReceiveDepth);
        }
    }
}
