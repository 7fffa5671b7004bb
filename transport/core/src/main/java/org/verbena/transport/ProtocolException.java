package org.verbena.transport;

import java.io.Serial;

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
