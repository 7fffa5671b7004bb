package org.verbena.transport.soft;

import java.util.EnumMap;
import java.util.Map;
import java.util.Objects;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.spi.RateLimitedLog;

/**
 * What strangers and peers do wrong, and what this side cannot do for them, in the log of whoever runs this side: a few lines a minute of each kind, and how
 * many more there were. A provider has one. Any thread.
 */
final class Incidents {
    private static final Logger LOG = LoggerFactory.getLogger(Incidents.class);

    /** What happened. */
    enum Kind {
        /** A connection that did not get through its handshake by its own fault. */
        HANDSHAKE,
        /** A segment that could not be accepted. */
        SEGMENT,
        /** A connection that could not be served for reasons of this side. */
        LOCAL
    }

    private final Map<Kind, RateLimitedLog> logs = new EnumMap<>(Kind.class);

    /** With the system's clock. */
    Incidents() {
        this(System::nanoTime);
    }

    /**
     * With another clock.
     *
     * @param nanoTime as {@link System#nanoTime()}
     */
    Incidents(LongSupplier nanoTime) {
        for (Kind kind : Kind.values()) {
            logs.put(kind, new RateLimitedLog(LOG, nanoTime));
        }
    }

    /**
     * Counts one, and logs it if there were not too many lately.
     *
     * @param kind what it is
     * @param text the line
     */
    void report(Kind kind, String text) {
        of(kind).warn(text);
    }

    /**
     * How many there were.
     *
     * @param kind of what
     * @return since this was made
     */
    long count(Kind kind) {
        return of(kind).count();
    }

    private RateLimitedLog of(Kind kind) {
        return Objects.requireNonNull(logs.get(kind));
    }
}
