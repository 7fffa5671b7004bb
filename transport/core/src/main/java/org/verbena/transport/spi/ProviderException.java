package org.verbena.transport.spi;

import java.io.Serial;

/** A provider's device, library or kernel refused a call, such as the registration of memory over the memlock limit. */
public final class ProviderException extends RdmaException {
    @Serial
    private static final long serialVersionUID = 1L;

    /**
     * Makes a failure.
     *
     * @param message the call, its arguments, the answer and the remedy
     */
    public ProviderException(String message) {
        super(message);
    }

    /**
     * Makes a failure from what the provider's library reported.
     *
     * @param message the call, its arguments, the answer and the remedy
     * @param cause what the library reported
     */
    public ProviderException(String message, Throwable cause) {
        super(message, cause);
    }
}
