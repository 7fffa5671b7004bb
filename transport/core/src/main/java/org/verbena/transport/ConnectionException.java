package org.verbena.transport;

import java.io.Serial;

/**
 * A connection could not be established, or was lost. The message names the address, the step and the reason.
 *
 * <p>If a request of an {@code RdmaClient} fails with it, {@link #mayHaveBegun()} tells whether the server may have
 * begun with the request.
 */
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

    /**
     * Tells whether the server may have begun with the request that failed. If it has not, the request can be sent
     * again without doing anything twice.
     *
     * @return true if the request was handed to a connection, at least once if it was sent again, and neither its reply
     *     nor its refusal arrived; false if no server has begun with it, and for what is no request
     */
    public boolean mayHaveBegun() {
        return false;
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

    /**
     * A client has no connection at the moment, or is closed: what was to be sent was not. A client that is not closed
     * goes on connecting, so the same may succeed later.
     */
    public static final class Unavailable extends ConnectionException {
        @Serial
        private static final long serialVersionUID = 1L;

        /**
         * Creates an exception.
         *
         * @param message what was to be done, the server, and why there is no connection
         */
        public Unavailable(String message) {
            super(message);
        }

        /**
         * Creates an exception with a cause.
         *
         * @param message what was to be done, the server, and why there is no connection
         * @param cause why there is no connection
         */
        public Unavailable(String message, Throwable cause) {
            super(message, cause);
        }
    }

    /** An operation was not begun, since one end had closed the connection in good order: it may be done elsewhere. */
    public static final class NotDone extends ConnectionException {
        @Serial
        private static final long serialVersionUID = 1L;

        /**
         * Creates an exception.
         *
         * @param message what was not done, and which end had closed
         */
        public NotDone(String message) {
            super(message);
        }

        /**
         * Creates an exception with a cause.
         *
         * @param message what was not done, and which end had closed
         * @param cause the reason
         */
        public NotDone(String message, Throwable cause) {
            super(message, cause);
        }
    }

    /** An established connection was lost: an end closed it or vanished, or its device or path failed. */
    public static final class Lost extends ConnectionException {
        @Serial
        private static final long serialVersionUID = 1L;

        private final boolean mayHaveBegun;

        /**
         * Creates an exception.
         *
         * @param message the address and what was observed
         */
        public Lost(String message) {
            super(message);
            mayHaveBegun = false;
        }

        /**
         * Creates an exception with a cause.
         *
         * @param message the address and what was observed
         * @param cause the reason
         */
        public Lost(String message, Throwable cause) {
            this(message, cause, false);
        }

        /**
         * Creates an exception of a request.
         *
         * @param message the address and what was observed
         * @param cause the reason
         * @param mayHaveBegun whether the request was sent, at least in part
         */
        public Lost(String message, Throwable cause, boolean mayHaveBegun) {
            super(message, cause);
            this.mayHaveBegun = mayHaveBegun;
        }

        @Override
        public boolean mayHaveBegun() {
            return mayHaveBegun;
        }
    }
}
