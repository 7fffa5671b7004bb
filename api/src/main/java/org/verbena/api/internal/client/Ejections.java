package org.verbena.api.internal.client;

import java.util.concurrent.TimeUnit;

/**
 * How long a connection that does not answer gets no requests: twice as long each time, unless it has answered for long
 * since the last time. Not for several threads.
 */
final class Ejections {
    static final long FIRST_NANOS = TimeUnit.SECONDS.toNanos(1);

    /** A connection that has answered for so many times its last ejection is as good as any. */
    static final int PAST = 10;

    private static final int MOST_DOUBLINGS = 10;

    private int doublings;
    private long lastNanos;
    private long endNanos;

    /**
     * It does not answer.
     *
     * @param mostNanos the longest time, if that is more than the first one
     * @return for how long it gets no requests
     */
    long next(long nowNanos, long mostNanos) {
        if (lastNanos > 0 && nowNanos - endNanos >= PAST * lastNanos) {
            doublings = 0;
        }
        lastNanos = Math.min(FIRST_NANOS << Math.min(doublings, MOST_DOUBLINGS), Math.max(FIRST_NANOS, mostNanos));
        endNanos = nowNanos + lastNanos;
        doublings++;
        return lastNanos;
    }
}
