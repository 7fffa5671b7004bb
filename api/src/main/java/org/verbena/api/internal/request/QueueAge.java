package org.verbena.api.internal.request;

import java.util.concurrent.atomic.AtomicLong;

/**
 * Distinguishes a standing queue from a burst by how long requests have waited when they are taken. The idea is that of
 * CoDel (RFC 8289): after a burst some request soon finds the queue short, so only a queue that is too long throughout
 * an interval is a standing one. While it is, requests that have waited twice the target are refused, as servers of
 * Facebook do ("Fail at Scale", ACM Queue 13.8). That needs neither a rate nor a length to be fitted to the handler,
 * and keeps the queue in order.
 *
 * <p>Any thread. A race between threads may lose a value, which ends a state an interval early or late.
 */
public final class QueueAge {
    private static final int REFUSED_TARGETS = 2;

    private final long targetNanos;
    private final long intervalNanos;
    private final AtomicLong intervalEndNanos;

    /** The shortest wait in this interval. */
    private volatile long minNanos = Long.MAX_VALUE;

    private volatile boolean standing;

    /**
     * Starts without a standing queue.
     *
     * @param targetNanos a wait that is acceptable at any time
     * @param intervalNanos how long waits may be longer than that in a burst
     * @param nowNanos the time of the loop's clock
     */
    public QueueAge(long targetNanos, long intervalNanos, long nowNanos) {
        this.targetNanos = targetNanos;
        this.intervalNanos = intervalNanos;
        intervalEndNanos = new AtomicLong(nowNanos + intervalNanos);
    }

    /** Records a request's wait; returns whether to refuse the request. */
    boolean refuses(long waitedNanos, long nowNanos) {
        long endNanos = intervalEndNanos.get();
        long overNanos = nowNanos - endNanos;
        if (overNanos >= 0 && intervalEndNanos.compareAndSet(endNanos, nowNanos + intervalNanos)) {
            // After an interval without requests, earlier waits say nothing about the present.
            standing = overNanos < intervalNanos && minNanos != Long.MAX_VALUE && minNanos > targetNanos;
            minNanos = waitedNanos;
        } else if (waitedNanos < minNanos) {
            minNanos = waitedNanos;
        }
        return standing && waitedNanos > REFUSED_TARGETS * targetNanos;
    }
}
