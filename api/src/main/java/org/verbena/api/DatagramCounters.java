package org.verbena.api;

import java.util.concurrent.atomic.AtomicLongArray;

/** What {@link DatagramStatistics} shows. Written by the channel's loop alone, read by any thread. */
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

    DatagramStatistics snapshot() {
        return new DatagramStatistics(
                values.getAcquire(SENT),
                values.getAcquire(SENT_BYTES),
                values.getAcquire(FAILED),
                values.getAcquire(RECEIVED),
                values.getAcquire(RECEIVED_BYTES),
                values.getAcquire(MALFORMED),
                values.getAcquire(FILTERED),
                values.getAcquire(STARVED));
    }
}
