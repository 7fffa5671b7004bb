package org.verbena.api.internal.client;

import java.util.concurrent.TimeUnit;
import java.util.random.RandomGenerator;

/**
 * How long to wait before the next attempt: anything from nothing up to a bound that grows with each failure, so that
 * clients which have lost the same server do not come back at the same time.
 *
 * @param leastNanos the bound after the first failure
 * @param mostNanos the bound after many
 */
public record Backoff(long leastNanos, long mostNanos) {
    /** From 50 ms, so that a server's restart is hardly noticed, to 30 s, which costs a server that is away little. */
    public static final Backoff DEFAULTS = new Backoff(TimeUnit.MILLISECONDS.toNanos(50), TimeUnit.SECONDS.toNanos(30));

    private static final double GROWTH = 1.6;

    /** A server that leaves may ask for more than the longest wait, but not that a client stays away for good. */
    private static final long MOST_HINT_NANOS = TimeUnit.SECONDS.toNanos(60);

    /** While somebody waits for the connection, the longest wait is so much shorter: 3 s by default. */
    private static final int HURRY = 10;

    /** The waits while somebody waits for the connection. */
    Backoff hurried() {
        return new Backoff(leastNanos, Math.max(leastNanos, mostNanos / HURRY));
    }

    /** The longest wait after so many failures in a row, 1 or more. */
    public long boundNanos(int failures) {
        double bound = leastNanos;
        for (int i = 1; i < failures && bound < mostNanos; i++) {
            bound *= GROWTH;
        }
        return Math.min((long) bound, mostNanos);
    }

    /** How long to wait after so many failures in a row, 1 or more. */
    public long delayNanos(int failures, RandomGenerator random) {
        return random.nextLong(boundNanos(failures) + 1);
    }

    /** How long to wait at least if a server that leaves has asked for this time. */
    public long heedNanos(long hintNanos) {
        return Math.min(hintNanos, Math.max(mostNanos, MOST_HINT_NANOS));
    }
}
