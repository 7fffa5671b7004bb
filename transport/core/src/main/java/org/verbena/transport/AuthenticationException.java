package org.verbena.transport;

import java.io.Serial;

/** The peer did not prove that it has a pre-shared key of this end. It was disconnected without a reason. */
public final class AuthenticationException extends RdmaException {
    @Serial
    private static final long serialVersionUID = 1L;

    /**
     * Creates an exception.
     *
     * @param message the peer, what was missing or wrong, and what to do
     */
    public AuthenticationException(String message) {
        super(message);
    }
}
