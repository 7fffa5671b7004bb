package org.verbena.api.internal.request;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.random.RandomGenerator;

/**
 * A client's budget for sending requests more than once. Such requests are load, too: in the long run at most a tenth
 * as many as the requests that are answered, plus a few in a burst, as with gRPC's retry throttling. Any thread.
 */
public final class Retries {
    /** The price of a retry, in replies. */
    public static final int REPLIES_PER_RETRY = 10;

    /** Retries that can be saved up, and that are available at first. */
    public static final int BURST = 10;

    private static final int MAX = BURST * REPLIES_PER_RETRY;

    /** The delay if the server gives no hint, so that requests are not repeated at once. */
    private static final long MIN_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

    /** A longer wait would not spread clients any further. */
    private static final long MAX_NANOS = TimeUnit.SECONDS.toNanos(10);

    private final AtomicInteger saved = new AtomicInteger(MAX);

    /** A request was answered. */
    public void answered() {
        if (saved.get() < MAX) { // so that nothing is written while nothing is retried
            saved.incrementAndGet();
        }
    }

    /** Whether to send a request again; if so, counts it. */
    public boolean tryTake() {
        int now = saved.get();
        while (now >= REPLIES_PER_RETRY) {
            if (saved.compareAndSet(now, now - REPLIES_PER_RETRY)) {
                return true;
            }
            now = saved.get();
        }
        return false;
    }

    /** How long to wait: at least the server's hint, doubled each time, plus up to the same time at random. */
    public static long delayNanos(long hintNanos, int already, RandomGenerator random) {
        long nanos = Math.max(hintNanos, MIN_NANOS);
        for (int i = 0; i < already && nanos < MAX_NANOS; i++) {
            nanos *= 2;
        }
        return nanos + random.nextLong(nanos);
    }
}
