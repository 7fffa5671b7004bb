package org.verbena.transport.verbs;

import java.net.InetSocketAddress;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Logs connections that were refused for a local reason, which the peer is not told and could not act on. At most once
 * a second, however many peers try. Any thread.
 */
final class Refusals {
    private static final Logger LOG = LoggerFactory.getLogger(Refusals.class);

    /** Often enough to be seen while it lasts, and a few hundred bytes of log each time. */
    static final long INTERVAL_NANOS = TimeUnit.SECONDS.toNanos(1);

    private final LongSupplier clock;

    // All guarded by this.
    private boolean hasTold;
    private long lastNanos;
    private long untold;
    private long count;

    Refusals(LongSupplier clock) {
        this.clock = clock;
    }

    /**
     * A connection was refused.
     *
     * @param remoteAddress whose
     * @param why what this side lacks
     */
    void refused(InetSocketAddress remoteAddress, Throwable why) {
        long more = takeTurn();
        if (more >= 0) {
            LOG.warn(
                    "Refused the connection of {}: {}{}",
                    VerbsProvider.format(remoteAddress),
                    why.getMessage(),
                    more == 0 ? "" : " (and " + more + " more since the last warning)");
        }
    }

    /**
     * Counts a refusal.
     *
     * @return how many went untold before it, or -1 if this one does as well
     */
    synchronized long takeTurn() {
        count++;
        long now = clock.getAsLong();
        if (hasTold && now - lastNanos < INTERVAL_NANOS) {
            untold++;
            return -1;
        }
        hasTold = true;
        lastNanos = now;
        long more = untold;
        untold = 0;
        return more;
    }

    /** How many there were. */
    synchronized long count() {
        return count;
    }
}
