package org.verbena.api;

import java.io.Serial;
import java.time.Duration;
import org.verbena.transport.RdmaException;

/** A request failed without a reply. The connection stays up. */
public sealed class RequestException extends RdmaException {
    @Serial
    private static final long serialVersionUID = 1L;

    RequestException(String message) {
        super(message);
    }

    /**
     * Whether the request may succeed if it is sent again a little later, and does no harm twice: the server has not
     * begun with it.
     *
     * @return true for {@link Overloaded}
     */
    public boolean isRetriable() {
        return false;
    }

    /** No reply arrived in time. One that arrives later is dropped and counted ({@link RdmaClient#lateReplies()}). */
    public static final class TimedOut extends RequestException {
        @Serial
        private static final long serialVersionUID = 1L;

        TimedOut(String message) {
            super(message);
        }
    }

    /**
     * The peer's handler threw instead of replying. The peer's log has the exception, and so has this message if the
     * server {@linkplain RdmaServer.Builder#describeFailures(boolean) describes failures}.
     */
    public static final class Failed extends RequestException {
        @Serial
        private static final long serialVersionUID = 1L;

        Failed(String message) {
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

        Overloaded(String message, Duration retryAfter) {
            super(message);
            this.retryAfter = retryAfter;
        }

        /**
         * How long requests wait at the server now: sooner than that it has nothing done of what it has to do.
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
}
