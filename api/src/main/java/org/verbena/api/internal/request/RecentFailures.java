package org.verbena.api.internal.request;

import java.util.concurrent.TimeUnit;

/**
 * The requests that a connection's server has lately answered with a failure. Each counts as one that is still under
 * way, half as much with each second: otherwise a server that fails at once would be the least loaded, and get nearly
 * all requests. What the program gives up does not count, and neither does what another server has answered sooner.
 */
final class RecentFailures {
    private static final double HALF_LIFE_NANOS = TimeUnit.SECONDS.toNanos(1);

    /** Failures above this number do not count: among servers that all fail so often, the load decides. */
    static final int MAX = 128;

    /** After this time even the largest count has fallen to none. */
    private static final long OVER_NANOS = TimeUnit.SECONDS.toNanos(8);

    // Written by the event loop, read by any thread: one that sees only one of them new is a little wrong.
    /** The count at {@link #atNanos}. */
    private volatile double count;

    private volatile long atNanos;

    void add0(long nowNanos) {
        count = Math.min(MAX, left(nowNanos) + 1);
        atNanos = nowNanos;
    }

    private double left(long nowNanos) {
        long ageNanos = nowNanos - atNanos;
        return ageNanos >= OVER_NANOS ? 0 : count * Math.pow(2, -Math.max(0, ageNanos) / HALF_LIFE_NANOS);
    }

    /** Whether there has never been one, which spares a look at the clock. Any thread. */
    boolean isNone() {
        return count == 0;
    }

    /** Any thread. */
    int count(long nowNanos) {
        return (int) left(nowNanos);
    }
}
