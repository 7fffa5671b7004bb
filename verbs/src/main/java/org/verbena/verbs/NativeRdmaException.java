package org.verbena.verbs;

import java.io.Serial;

/**
 * A call to libibverbs or librdmacm that failed: {@link VerbsException} here, {@code CmException} in {@code
 * org.verbena.cm}. Its message names the call, its arguments, the system's answer and what to do. It would be sealed if
 * both its kinds lived in one module.
 */
public abstract class NativeRdmaException extends RuntimeException {
    @Serial
    private static final long serialVersionUID = 1L;

    /**
     * Creates an exception without a cause.
     *
     * @param message what happened and what to do
     */
    protected NativeRdmaException(String message) {
        super(message);
    }

    /**
     * Creates an exception with a cause.
     *
     * @param message what happened and what to do
     * @param cause the first thing that went wrong
     */
    protected NativeRdmaException(String message, Throwable cause) {
        super(message, cause);
    }

    /**
     * The call's errno.
     *
     * @return a positive errno; 0 if an event reported the failure
     */
    public abstract int errno();
}
