package org.verbena.samples.command;

import java.io.Serial;

/** The failure of a command. Its message is all that the user needs, and is printed without a stack trace. */
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
