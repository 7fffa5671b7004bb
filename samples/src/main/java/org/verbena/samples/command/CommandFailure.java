package org.verbena.samples.command;

import java.io.Serial;

/**
 * A command that did not do what it was asked to. Its message is all that the user needs; it is printed without a stack
 * trace.
 */
public final class CommandFailure extends RuntimeException {
    @Serial
    private static final long serialVersionUID = 1L;

    public CommandFailure(String message) {
        super(message);
    }

    public CommandFailure(String message, Throwable cause) {
        super(message, cause);
    }
}
