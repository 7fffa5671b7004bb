package org.verbena.transport.spi;

import java.io.Serial;

/**
 * The root of every failure that channels, endpoints and registered memory report. Its message says what happened and
 * what to do about it. The bindings below the native provider have exceptions of their own; where one of theirs is the
 * reason, it is the cause of one of these.
 */
public abstract class RdmaException extends RuntimeException {
    @Serial
    private static final long serialVersionUID = 1L;

    /**
     * Makes a failure without a cause.
     *
     * @param message what happened and what to do
     */
    protected RdmaException(String message) {
        super(message);
    }

    /**
     * Makes a failure that another one led to.
     *
     * @param message what happened and what to do
     * @param cause the first thing that went wrong
     */
    protected RdmaException(String message, Throwable cause) {
        super(message, cause);
    }
}
