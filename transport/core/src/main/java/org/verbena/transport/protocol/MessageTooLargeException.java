package org.verbena.transport.protocol;

import java.io.Serial;
import org.verbena.transport.spi.RdmaException;

/** A message beyond what the peer takes. Nothing of it was sent, and the connection goes on. */
public final class MessageTooLargeException extends RdmaException {
    @Serial
    private static final long serialVersionUID = 1L;

    /**
     * Makes one.
     *
     * @param message the sizes and what to do
     */
    public MessageTooLargeException(String message) {
        super(message);
    }
}
