package org.verbena.verbs;

import java.io.Serial;

/**
 * A call to libibverbs or librdmacm that failed: {@link VerbsException} here, {@code CmException} in
 * {@code org.verbena.cm}. Its message names the call, its arguments, the system's answer and the remedy. It would be
 * sealed if both its kinds lived in one module.
 */
public abstract class NativeRdmaException extends RuntimeException {
    @Serial
    private static final long serialVersionUID = 1L;

    /**
     * Makes a failure without a cause.
     *
     * @param message what happened and what to do
     */
    protected NativeRdmaException(String message) {
        super(message);
    }

    /**
     * Makes a failure that another one led to.
     *
     * @param message what happened and what to do
     * @param cause the first thing that went wrong
     */
    protected NativeRdmaException(String message, Throwable cause) {
        super(message, cause);
    }
}
