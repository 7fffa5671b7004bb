package org.verbena.verbs;

import java.io.Serial;

/**
 * The root of every failure that Verbena reports. Its message names the call, what it was called with, what the system
 * answered and what to do about it. It would be sealed if all its kinds lived in one module; they are
 * {@link VerbsException} here, {@code CmException} in {@code org.verbena.cm}, and the connection and completion failures
 * of {@code org.verbena.transport.spi}.
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
