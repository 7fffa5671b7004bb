package org.verbena.api.internal.request;

import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/**
 * Whether and when a client sends requests again that its server has refused. Retries are a load, too: in the long run
 * they may be a tenth of what is answered, and a few more in a burst, as with gRPC's retry throttling. Event loop only.
 */
public final class Retries {
    /** What a retry costs, in replies. */
    public static final int REPLIES_PER_RETRY = 10;

    /** Retries that are saved up while all goes well, and had at first. */
    public static final int BURST = 10;

    /** Where the server has no hint, so that it is not asked again at once. */
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

    /** Whether a request may be sent again that has been so many times; it is counted as sent. */
    boolean tryTake(int already) {
        if (already >= mostPerRequest || saved < REPLIES_PER_RETRY) {
            return false;
        }
        saved -= REPLIES_PER_RETRY;
        return true;
    }

    /** How long to wait: no less than the server's hint, twice as long each time, and up to as long again at random. */
    static long delayNanos(long hintNanos, int already) {
        long nanos = Math.max(hintNanos, LEAST_NANOS);
        for (int i = 0; i < already && nanos < MOST_NANOS; i++) {
            nanos *= 2;
        }
        return nanos + ThreadLocalRandom.current().nextLong(nanos);
    }
}
