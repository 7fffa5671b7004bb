package org.verbena.transport.spi;

import java.io.Serial;

/** A connection that did not come up, or went down. The message names address, step and reason. */
public sealed class ConnectionException extends RdmaException {
    @Serial
    private static final long serialVersionUID = 1L;

    /**
     * Makes one.
     *
     * @param message address, step and reason
     */
    public ConnectionException(String message) {
        super(message);
    }

    /**
     * Makes one with a cause.
     *
     * @param message address, step and reason
     * @param cause what led to it
     */
    public ConnectionException(String message, Throwable cause) {
        super(message, cause);
    }

    /** The peer said no, or nobody listens there. */
    public static final class Rejected extends ConnectionException {
        @Serial
        private static final long serialVersionUID = 1L;

        /** The peer's private data. */
        private final byte[] privateData;

        /**
         * Makes one.
         *
         * @param message address, step and reason
         * @param privateData what the peer sent along, possibly padded with zeros; empty if nothing
         */
        public Rejected(String message, byte[] privateData) {
            super(message);
            this.privateData = privateData.clone();
        }

        /**
         * What the peer sent along.
         *
         * @return a copy
         */
        public byte[] privateData() {
            return privateData.clone();
        }
    }

    /** No device, address or route leads there. */
    public static final class Unreachable extends ConnectionException {
        @Serial
        private static final long serialVersionUID = 1L;

        /**
         * Makes one.
         *
         * @param message address, step and reason
         */
        public Unreachable(String message) {
            super(message);
        }

        /**
         * Makes one with a cause.
         *
         * @param message address, step and reason
         * @param cause what led to it
         */
        public Unreachable(String message, Throwable cause) {
            super(message, cause);
        }
    }

    /** It took longer than allowed. */
    public static final class TimedOut extends ConnectionException {
        @Serial
        private static final long serialVersionUID = 1L;

        /**
         * Makes one.
         *
         * @param message address, step reached and the limit
         */
        public TimedOut(String message) {
            super(message);
        }
    }

    /** It was up and was lost: the peer vanished, or its device or path failed. */
    public static final class Lost extends ConnectionException {
        @Serial
        private static final long serialVersionUID = 1L;

        /**
         * Makes one.
         *
         * @param message address and what was seen
         */
        public Lost(String message) {
            super(message);
        }

        /**
         * Makes one with a cause.
         *
         * @param message address and what was seen
         * @param cause what led to it
         */
        public Lost(String message, Throwable cause) {
            super(message, cause);
        }
    }
}
