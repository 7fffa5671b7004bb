package org.verbena.api.internal.datagram;

import java.util.concurrent.atomic.AtomicLongArray;

/** The counters of a datagram channel. Written only by the channel's loop, read by any thread. */
public final class DatagramCounters {
    public static final int SENT = 0;
    public static final int SENT_BYTES = 1;
    public static final int FAILED = 2;
    public static final int RECEIVED = 3;
    public static final int RECEIVED_BYTES = 4;
    public static final int MALFORMED = 5;
    public static final int FILTERED = 6;
    public static final int STARVED = 7;
    private static final int COUNT = 8;

    private final AtomicLongArray values = new AtomicLongArray(COUNT);

    public void add(int counter, long amount) {
        values.setRelease(counter, values.getPlain(counter) + amount);
    }

    public long get(int counter) {
        return values.getAcquire(counter);
    }
}
