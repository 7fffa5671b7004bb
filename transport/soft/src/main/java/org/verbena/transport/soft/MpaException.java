package org.verbena.transport.soft;

import java.io.Serial;

/** A frame of the startup phase that cannot be used. The message completes "the frame ...". */
final class MpaException extends Exception {
    @Serial
    private static final long serialVersionUID = 1L;

    /**
     * Creates one.
     *
     * @param message what is wrong with the frame
     */
    MpaException(String message) {
        super(message);
    }
}
