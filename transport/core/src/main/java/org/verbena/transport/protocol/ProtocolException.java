package org.verbena.transport.protocol;

import java.io.Serial;
import org.verbena.transport.spi.RdmaException;

/** The peer violated the message protocol, or does not speak it. It was disconnected. */
public final class ProtocolException extends RdmaException {
    @Serial
    private static final long serialVersionUID = 1L;

    /**
     * Creates an exception.
     *
     * @param message the violation and what to do
     */
    public ProtocolException(String message) {
        super(message);
    }
}
