package org.verbena.transport;

import java.io.Serial;

/**
 * A pool of registered memory is at its limit. The message names the limit, what is in use, and the option to change.
 */
public final class RegisteredMemoryExhaustedException extends RdmaException {
    @Serial
    private static final long serialVersionUID = 1L;

    /**
     * Creates an exception.
     *
     * @param message which limit, and what to do
     */
    public RegisteredMemoryExhaustedException(String message) {
        super(message);
    }

    /**
     * Creates an exception with a cause.
     *
     * @param message which limit, and what to do
     * @param cause the system's answer
     */
    public RegisteredMemoryExhaustedException(String message, Throwable cause) {
        super(message, cause);
    }
}
