package org.verbena.transport.soft;

import java.util.EnumMap;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What strangers and peers do wrong, and what this side cannot do for them, in the log of whoever runs this side: a few lines a minute of each kind, and how
 * many more there were. A provider has one. Any thread.
 */
final class Incidents {
    private static final Logger LOG = LoggerFactory.getLogger(Incidents.class);

    /** Lines of one kind in a {@link #PERIOD_NANOS period}: enough to see a pattern, too few to fill a disk. */
    static final int LINES_PER_PERIOD = 10;

    /** A minute. */
    static final long PERIOD_NANOS = TimeUnit.MINUTES.toNanos(1);

    /** What happened. */
    enum Kind {
        /** A connection that did not get through its handshake by its own fault. */
        HANDSHAKE,
        /** A segment that could not be accepted. */
        SEGMENT,
        /** A connection that could not be served for reasons of this side. */
        LOCAL
    }

    /** What there was of one kind. */
    private static final class Tally {
        private long count;
        private long untold;
        private long periodEndNanos;
        private int linesOfPeriod;
    }

    private final LongSupplier nanoTime;
    private final Map<Kind, Tally> tallies = new EnumMap<>(Kind.class);

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
        this.nanoTime = nanoTime;
        for (Kind kind : Kind.values()) {
            tallies.put(kind, new Tally());
        }
    }

    /**
     * Counts one, and logs it if there were not too many lately.
     *
     * @param kind what it is
     * @param text the line
     */
    void report(Kind kind, String text) {
        long before = admit(kind);
        if (before == 0) {
            LOG.warn("{}", text);
        } else if (before > 0) {
            LOG.warn("{} (and {} more of this kind since the last line)", text, before);
        } else {
            LOG.debug("{}", text);
        }
    }

    /** Counts one; how many were not logged before it, or -1 if it is not to be logged either. */
    private synchronized long admit(Kind kind) {
        Tally tally = tally(kind);
        tally.count++;
        long now = nanoTime.getAsLong();
        if (tally.count == 1 || now - tally.periodEndNanos >= 0) {
            tally.periodEndNanos = now + PERIOD_NANOS;
            tally.linesOfPeriod = 0;
        }
        if (tally.linesOfPeriod == LINES_PER_PERIOD) {
            tally.untold++;
            return -1;
        }
        tally.linesOfPeriod++;
        long before = tally.untold;
        tally.untold = 0;
        return before;
    }

    /**
     * How many there were.
     *
     * @param kind of what
     * @return since this was made
     */
    synchronized long count(Kind kind) {
        return tally(kind).count;
    }

    private Tally tally(Kind kind) {
        return Objects.requireNonNull(tallies.get(kind));
    }
}
