package org.verbena.transport.protocol;

import java.io.Serial;
import org.verbena.transport.spi.RdmaException;

/** A message above the peer's limit. Nothing of it was sent, and the connection continues. */
public final class MessageTooLargeException extends RdmaException {
    @Serial
    private static final long serialVersionUID = 1L;

    /**
     * Creates an exception.
     *
     * @param message the sizes and what to do
     */
    public MessageTooLargeException(String message) {
        super(message);
    }
}
