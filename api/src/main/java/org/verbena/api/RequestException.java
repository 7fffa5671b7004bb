package org.verbena.api;

import java.io.Serial;
import org.verbena.transport.spi.RdmaException;

/** A request that got no reply. The connection goes on. */
public sealed class RequestException extends RdmaException {
    @Serial
    private static final long serialVersionUID = 1L;

    RequestException(String message) {
        super(message);
    }

    /** No reply came in time. One that comes later is dropped and counted ({@link RdmaClient#lateReplies()}). */
    public static final class TimedOut extends RequestException {
        @Serial
        private static final long serialVersionUID = 1L;

        TimedOut(String message) {
            super(message);
        }
    }

    /**
     * The peer's handler threw instead of replying. The peer's log says what, and this message as well if the server
     * {@linkplain RdmaServer.Builder#describeFailures(boolean) describes failures}.
     */
    public static final class Failed extends RequestException {
        @Serial
        private static final long serialVersionUID = 1L;

        Failed(String message) {
            super(message);
        }
    }
}
