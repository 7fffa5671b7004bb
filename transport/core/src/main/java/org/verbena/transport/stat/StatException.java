package org.verbena.transport.stat;

import java.io.IOException;
import java.io.Serial;

/** A file that is not one of counters, or not one that this version reads. */
public final class StatException extends IOException {
    @Serial
    private static final long serialVersionUID = 1L;

    StatException(String message) {
        super(message);
    }
}
