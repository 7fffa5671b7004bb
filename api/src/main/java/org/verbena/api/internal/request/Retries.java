package org.verbena.api.internal.request;

import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/**
 * Decides whether and when a client sends refused requests again. Retries are load, too: in the long run at most a
 * tenth as many as the requests that are answered, plus a few in a burst, as with gRPC's retry throttling. Event loop
 * only.
 */
public final class Retries {
    /** The price of a retry, in replies. */
    public static final int REPLIES_PER_RETRY = 10;

    /** Retries that can be saved up, and that are available at first. */
    public static final int BURST = 10;

    /** The delay if the server gives no hint, so that requests are not repeated at once. */
    private static final long LEAST_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

    /** A longer wait would not spread clients any further. */
    private static final long MOST_NANOS = TimeUnit.SECONDS.toNanos(10);

    private final int mostPerRequest;
    private int saved = BURST * REPLIES_PER_RETRY;

    public Retries(int mostPerRequest) {
        this.mostPerRequest = mostPerRequest;
    }

    /** A request was answered. */
    void answered() {
        saved = Math.min(saved + 1, BURST * REPLIES_PER_RETRY);
    }

    /** Whether to send a request again that has already been sent again this often; if so, counts it. */
    boolean tryTake(int already) {
        if (already >= mostPerRequest || saved < REPLIES_PER_RETRY) {
            return false;
        }
        saved -= REPLIES_PER_RETRY;
        return true;
    }

    /** How long to wait: at least the server's hint, doubled each time, plus up to the same time at random. */
    static long delayNanos(long hintNanos, int already) {
        long nanos = Math.max(hintNanos, LEAST_NANOS);
        for (int i = 0; i < already && nanos < MOST_NANOS; i++) {
            nanos *= 2;
        }
        return nanos + ThreadLocalRandom.current().nextLong(nanos);
    }
}
