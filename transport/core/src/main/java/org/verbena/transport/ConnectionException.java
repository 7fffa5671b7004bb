package org.verbena.transport;

import java.io.Serial;

/** A connection could not be established, or was lost. The message names the address, the step and the reason. */
public sealed class ConnectionException extends RdmaException {
    @Serial
    private static final long serialVersionUID = 1L;

    /**
     * Creates an exception.
     *
     * @param message address, step and reason
     */
    public ConnectionException(String message) {
        super(message);
    }

    /**
     * Creates an exception with a cause.
     *
     * @param message address, step and reason
     * @param cause the reason
     */
    public ConnectionException(String message, Throwable cause) {
        super(message, cause);
    }

    /** The peer rejected the connection, or nothing listens at that address. */
    public static final class Rejected extends ConnectionException {
        @Serial
        private static final long serialVersionUID = 1L;

        /** The peer's private data. */
        private final byte[] privateData;

        /**
         * Creates an exception.
         *
         * @param message address, step and reason
         * @param privateData the peer's private data, possibly padded with zeros; empty if none
         */
        public Rejected(String message, byte[] privateData) {
            super(message);
            this.privateData = privateData.clone();
        }

        /**
         * The peer's private data.
         *
         * @return a copy
         */
        public byte[] privateData() {
            return privateData.clone();
        }
    }

    /** No device, address or route leads to the peer. */
    public static final class Unreachable extends ConnectionException {
        @Serial
        private static final long serialVersionUID = 1L;

        /**
         * Creates an exception.
         *
         * @param message address, step and reason
         */
        public Unreachable(String message) {
            super(message);
        }

        /**
         * Creates an exception with a cause.
         *
         * @param message address, step and reason
         * @param cause the reason
         */
        public Unreachable(String message, Throwable cause) {
            super(message, cause);
        }
    }

    /** Connecting took longer than allowed. */
    public static final class TimedOut extends ConnectionException {
        @Serial
        private static final long serialVersionUID = 1L;

        /**
         * Creates an exception.
         *
         * @param message address, step reached and the limit
         */
        public TimedOut(String message) {
            super(message);
        }
    }

    /** An established connection was lost: the peer vanished, or its device or path failed. */
    public static final class Lost extends ConnectionException {
        @Serial
        private static final long serialVersionUID = 1L;

        /**
         * Creates an exception.
         *
         * @param message the address and what was observed
         */
        public Lost(String message) {
            super(message);
        }

        /**
         * Creates an exception with a cause.
         *
         * @param message the address and what was observed
         * @param cause the reason
         */
        public Lost(String message, Throwable cause) {
            super(message, cause);
        }
    }
}
