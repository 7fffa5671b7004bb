package org.verbena.api.internal.channel;

import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * Translates a cause into an exception of this API, the same cause into the same exception: everything pending fails
 * with one failure. Event loop only.
 */
public final class CauseMemo {
    private final UnaryOperator<Throwable> translation;
    private @Nullable Throwable lastCause;
    private @Nullable Throwable lastTold;

    public CauseMemo(UnaryOperator<Throwable> translation) {
        this.translation = translation;
    }

    public Throwable of(Throwable cause) {
        Throwable told = lastTold;
        if (told == null || !cause.equals(lastCause)) {
            told = translation.apply(cause);
            lastCause = cause;
            lastTold = told;
        }
        return told;
    }
}
