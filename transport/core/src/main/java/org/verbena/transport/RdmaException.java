package org.verbena.transport;

import java.io.Serial;

/**
 * The root of every failure that channels, endpoints and registered memory report. Its message says what happened and
 * what to do about it. The bindings below the native provider have their own exceptions; one of these appears as the
 * cause.
 */
public abstract class RdmaException extends RuntimeException {
    @Serial
    private static final long serialVersionUID = 1L;

    /**
     * Creates an exception without a cause.
     *
     * @param message what happened and what to do
     */
    protected RdmaException(String message) {
        super(message);
    }

    /**
     * Creates an exception with a cause.
     *
     * @param message what happened and what to do
     * @param cause the first thing that went wrong
     */
    protected RdmaException(String message, Throwable cause) {
        super(message, cause);
    }
}
