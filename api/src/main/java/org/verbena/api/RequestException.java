package org.verbena.api;

import java.io.Serial;
import org.verbena.transport.spi.RdmaException;

/** A request failed without a reply. The connection stays up. */
public sealed class RequestException extends RdmaException {
    @Serial
    private static final long serialVersionUID = 1L;

    RequestException(String message) {
        super(message);
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
}
