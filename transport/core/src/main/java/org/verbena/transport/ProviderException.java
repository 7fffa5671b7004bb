package org.verbena.transport;

import java.io.Serial;

/** A provider's device, library or kernel refused a call, for example to register memory above the memlock limit. */
public final class ProviderException extends RdmaException {
    @Serial
    private static final long serialVersionUID = 1L;

    /**
     * Creates an exception.
     *
     * @param message the call, its arguments, the answer and what to do
     */
    public ProviderException(String message) {
        super(message);
    }

    /**
     * Creates an exception from the library's exception.
     *
     * @param message the call, its arguments, the answer and what to do
     * @param cause the library's exception
     */
    public ProviderException(String message, Throwable cause) {
        super(message, cause);
    }
}
