package org.verbena.transport;

import java.io.Serial;

/** The requested provider cannot work here, or there is none. The message says why and what to do. */
public final class ProviderUnavailableException extends RdmaException {
    @Serial
    private static final long serialVersionUID = 1L;

    /**
     * Creates an exception.
     *
     * @param message what was requested, why it is not available, and what to do
     */
    public ProviderUnavailableException(String message) {
        super(message);
    }

    /**
     * Creates an exception with the provider's own reason.
     *
     * @param message what was requested, why it is not available, and what to do
     * @param cause {@code RdmaProvider.unavailabilityCause()}
     */
    public ProviderUnavailableException(String message, Throwable cause) {
        super(message, cause);
    }
}
