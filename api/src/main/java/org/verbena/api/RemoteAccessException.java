package org.verbena.api;

import java.io.Serial;
import org.verbena.transport.WorkCompletionException;
import org.verbena.transport.WorkStatus;

/**
 * The peer refused a read, write or atomic: the key is wrong or was invalidated, the range is outside the region, or
 * the region does not grant the right. On reliable connections this ends the connection, and everything pending on it
 * fails with this exception.
 *
 * <p>Source: InfiniBand Architecture Specification 1.4, 9.9.2.4; RFC 5040, 7.1
 */
public final class RemoteAccessException extends WorkCompletionException {
    @Serial
    private static final long serialVersionUID = 1L;

    RemoteAccessException(WorkCompletionException cause) {
        super("an operation on the peer's memory", cause.status(), cause.vendorError());
        initCause(cause);
    }

    /** Translates a failure into this exception if the peer refused access. */
    static Throwable translate(Throwable cause) {
        return cause instanceof WorkCompletionException failed
                        && !(cause instanceof RemoteAccessException)
                        && failed.status() == WorkStatus.REMOTE_ACCESS_ERROR
                ? new RemoteAccessException(failed)
                : cause;
    }
}
