package org.verbena.transport;

import java.io.Serial;
import org.verbena.transport.spi.RdmaException;

/** The provider that was asked for cannot work here, or there is none. The message says why and what to do. */
public final class ProviderUnavailableException extends RdmaException {
    @Serial
    private static final long serialVersionUID = 1L;

    /**
     * Makes one.
     *
     * @param message what was asked for, why it cannot be had, what to do
     */
    public ProviderUnavailableException(String message) {
        super(message);
    }

    /**
     * Makes one with the provider's own reason.
     *
     * @param message what was asked for, why it cannot be had, what to do
     * @param cause {@link org.verbena.transport.spi.RdmaProvider#unavailabilityCause()}
     */
    public ProviderUnavailableException(String message, Throwable cause) {
        super(message, cause);
    }
}
