package org.verbena.api.internal.request;

import java.util.concurrent.atomic.AtomicLong;

/**
 * Estimates the time that 95 of 100 replies need at most, without keeping them: the estimate moves up by 19 small steps
 * for each reply that takes longer, and down by one for each other. Any thread; of two steps at the same time one may
 * be lost.
 */
public final class Latency {
    private static final int UP = 19;

    /** A step is this part of the estimate, so that it follows any scale. */
    private static final int STEP_SHARE = 256;

    /** The first estimate has settled after this many replies. */
    private static final int FEWEST = 200;

    private final AtomicLong estimateNanos = new AtomicLong();
    private final AtomicLong count = new AtomicLong();

    public void took(long nanos) {
        count.setOpaque(count.getOpaque() + 1);
        long now = estimateNanos.getOpaque();
        if (now == 0) {
            estimateNanos.setOpaque(Math.max(1, nanos));
            return;
        }
        long step = now / STEP_SHARE + 1;
        estimateNanos.setOpaque(nanos > now ? now + UP * step : Math.max(1, now - step));
    }

    /** In nanoseconds; 0 while too few are known. */
    public long estimateNanos() {
        return count.getOpaque() < FEWEST ? 0 : estimateNanos.getOpaque();
    }

    /** As {@link #estimateNanos}, however few are known: too long rather than too short then. 0 for none. */
    long firstEstimateNanos() {
        return estimateNanos.getOpaque();
    }
}
