package org.verbena.transport.protocol;

import java.io.Serial;
import org.verbena.transport.spi.RdmaException;

/** The peer broke the message protocol, or is not a peer that speaks it. It was cut off. */
public final class ProtocolException extends RdmaException {
    @Serial
    private static final long serialVersionUID = 1L;

    /**
     * Makes one.
     *
     * @param message what the peer did and what to do
     */
    public ProtocolException(String message) {
        super(message);
    }
}
