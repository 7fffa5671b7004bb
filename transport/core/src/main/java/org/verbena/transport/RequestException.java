package org.verbena.transport;

import java.io.Serial;
import java.time.Duration;

/** A request of an {@code RdmaClient} failed without a reply. The connection stays up. */
public sealed class RequestException extends RdmaException
        permits RequestException.TimedOut,
                RequestException.Failed,
                RequestException.Overloaded,
                RequestException.Refused,
                RequestFailure {
    @Serial
    private static final long serialVersionUID = 1L;

    RequestException(String message) {
        super(message);
    }

    /**
     * Tells whether the request can be sent again without doing anything twice: the server has not begun with it. It
     * may succeed a little later.
     *
     * @return true for {@link Overloaded}
     */
    public boolean isRetriable() {
        return false;
    }

    /** No reply arrived in time. One that arrives later is dropped and counted ({@code RdmaClient.lateReplies()}). */
    public static final class TimedOut extends RequestException {
        @Serial
        private static final long serialVersionUID = 1L;

        /**
         * Creates one.
         *
         * @param message what failed, with the peer's address
         */
        public TimedOut(String message) {
            super(message);
        }
    }

    /**
     * The peer's handler threw something else than a {@link RequestFailure} instead of replying. The peer's log has the
     * exception, and so has this message if the server was built with {@code discloseErrors}.
     */
    public static final class Failed extends RequestException {
        @Serial
        private static final long serialVersionUID = 1L;

        /**
         * Creates one.
         *
         * @param message what failed, with the peer's address
         */
        public Failed(String message) {
            super(message);
        }
    }

    /**
     * The server is overloaded and refused the request before its handler: it was not begun. Sent again, it may
     * succeed, but not before {@link #retryAfter()}, and best after a random time on top of that, so that clients do
     * not come back all at once.
     */
    public static final class Overloaded extends RequestException {
        @Serial
        private static final long serialVersionUID = 1L;

        private final Duration retryAfter;

        /**
         * Creates one.
         *
         * @param message what failed, with the peer's address
         * @param retryAfter the server's hint
         */
        public Overloaded(String message, Duration retryAfter) {
            super(message);
            this.retryAfter = retryAfter;
        }

        /**
         * Returns how long requests wait at the server now. A request that is sent again sooner finds the same queue.
         *
         * @return the server's hint, zero or more
         */
        public Duration retryAfter() {
            return retryAfter;
        }

        @Override
        public boolean isRetriable() {
            return true;
        }
    }

    /**
     * The server does not take the request, and would not take it a little later: it was not begun. The message has the
     * server's words.
     */
    public static final class Refused extends RequestException {
        @Serial
        private static final long serialVersionUID = 1L;

        /** Why. */
        public enum Reason {
            /** The server has no such service or method. */
            UNKNOWN,
            /** The server does not let this client call it. */
            NOT_AUTHORIZED,
            /** The request is over a limit of the server's. */
            LIMIT
        }

        private final Reason reason;

        /**
         * Creates one.
         *
         * @param message what failed, with the peer's address
         * @param reason why
         */
        public Refused(String message, Reason reason) {
            super(message);
            this.reason = reason;
        }

        /**
         * Returns why the server has refused it.
         *
         * @return the reason
         */
        public Reason reason() {
            return reason;
        }
    }
}
