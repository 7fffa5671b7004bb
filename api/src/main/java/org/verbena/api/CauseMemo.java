package org.verbena.api;

import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * Puts a cause into other words, and the same cause into the same exception: everything pending tells one failure. The
 * loop's.
 */
final class CauseMemo {
    private final UnaryOperator<Throwable> translation;
    private @Nullable Throwable lastCause;
    private @Nullable Throwable lastTold;

    CauseMemo(UnaryOperator<Throwable> translation) {
        this.translation = translation;
    }

    Throwable of(Throwable cause) {
        Throwable told = lastTold;
        if (told == null || !cause.equals(lastCause)) {
            told = translation.apply(cause);
            lastCause = cause;
            lastTold = told;
        }
        return told;
    }
}
