package org.verbena.transport.soft;

import java.util.EnumMap;
import java.util.Map;
import java.util.Objects;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.spi.RateLimitedLog;

/**
 * Logs what strangers and peers do wrong, and what this side cannot do for them: a few lines a minute of each kind, and
 * how many more there were. A provider has one. Any thread.
 */
final class PeerErrorLog {
    private static final Logger LOG = LoggerFactory.getLogger(PeerErrorLog.class);

    /** What happened. */
    enum Kind {
        /** A connection whose handshake failed through the peer's fault. */
        HANDSHAKE,
        /** A segment that could not be accepted. */
        SEGMENT,
        /** A connection that could not be served for local reasons. */
        LOCAL
    }

    private final Map<Kind, RateLimitedLog> logs = new EnumMap<>(Kind.class);

    /** With the system's clock. */
    PeerErrorLog() {
        this(System::nanoTime);
    }

    /**
     * With another clock.
     *
     * @param nanoTime as {@link System#nanoTime()}
     */
    PeerErrorLog(LongSupplier nanoTime) {
        for (Kind kind : Kind.values()) {
            logs.put(kind, new RateLimitedLog(LOG, nanoTime));
        }
    }

    /**
     * Counts an incident, and logs it unless there were too many recently.
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
