package org.verbena.api;

import java.util.concurrent.atomic.AtomicLongArray;

/** What a datagram channel counts. Written by the channel's loop only, read by any thread. */
final class DatagramCounters {
    static final int SENT = 0;
    static final int SENT_BYTES = 1;
    static final int FAILED = 2;
    static final int RECEIVED = 3;
    static final int RECEIVED_BYTES = 4;
    static final int MALFORMED = 5;
    static final int FILTERED = 6;
    static final int STARVED = 7;
    private static final int COUNT = 8;

    private final AtomicLongArray values = new AtomicLongArray(COUNT);

    void add(int counter, long amount) {
        values.setRelease(counter, values.getPlain(counter) + amount);
    }

    long get(int counter) {
        return values.getAcquire(counter);
    }
}
