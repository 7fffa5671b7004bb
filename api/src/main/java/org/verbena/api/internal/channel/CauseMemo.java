package org.verbena.api.internal.channel;

import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * Translates a cause into an exception of this API, always the same one for the same cause, so that everything pending
 * fails with one exception. Event loop only.
 */
public final class CauseMemo {
    private final UnaryOperator<Throwable> translation;
    private @Nullable Throwable lastCause;
    private @Nullable Throwable lastTranslated;

    public CauseMemo(UnaryOperator<Throwable> translation) {
        this.translation = translation;
    }

    public Throwable of(Throwable cause) {
        Throwable translated = lastTranslated;
        if (translated == null || !cause.equals(lastCause)) {
            translated = translation.apply(cause);
            lastCause = cause;
            lastTranslated = translated;
        }
        return translated;
    }
}
