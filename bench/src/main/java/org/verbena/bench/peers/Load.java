package org.verbena.bench.peers;

import java.util.concurrent.atomic.AtomicLongArray;
import org.HdrHistogram.Histogram;

/**
 * A bounded stretch of load: at most {@code window} messages of {@code size} bytes outstanding until time is up.
 * A contender asks it when to send and tells it what came back; all timing and checking is here, the same for all.
 *
 * <p>The message with sequence number s is {@link #payload} with s in its first 8 bytes (big endian). The contender
 * copies it from there into its send buffer, again for each message.
 *
 * <p>Threads: {@link #next()} by one thread at a time, {@link #echoed} by one thread at a time; the two may differ.
 */
public final class Load {
    private static final int SLOTS = 4096; // more than any window, so that echoes may come back out of order
    private static final byte LAST = 0x5a;

    public final int size;
    public final int window;
    public final byte[] payload;

    private final AtomicLongArray sentAt = new AtomicLongArray(SLOTS);
    private final AtomicLongArray sentSequence = new AtomicLongArray(SLOTS);
    private final Histogram roundTrips = new Histogram(1, 60_000_000_000L, 3);
    private final long startedAt;
    private final long endAt;
    private volatile long sent;
    private volatile long received;
    private volatile boolean timeUp;
    private volatile long lastEchoAt;

    Load(Workload workload, double seconds) {
        size = workload.size();
        window = workload.window();
        payload = new byte[size];
        for (int i = 0; i < size; i++) {
            payload[i] = (byte) i;
        }
        payload[size - 1] = LAST;
        for (int i = 0; i < SLOTS; i++) {
            sentSequence.setPlain(i, -1);
        }
        startedAt = System.nanoTime();
        endAt = startedAt + (long) (seconds * 1e9);
    }

    /** The sequence number of a message to send now, or -1 if none may be sent now. The clock for it starts here. */
    public long next() {
        long sequence = sent;
        if (timeUp || sequence - received >= window) {
            return -1;
        }
        long now = System.nanoTime();
        if (now >= endAt) {
            timeUp = true;
            return -1;
        }
        int slot = (int) sequence & (SLOTS - 1);
        sentAt.setRelease(slot, now);
        sentSequence.setRelease(slot, sequence);
        SENT.setRelease(this, sequence + 1);
        return sequence;
    }

    /** An echo came back whole: its sequence number, its length and its last byte. */
    public void echoed(long sequence, int length, byte last) {
        long now = System.nanoTime();
        int slot = (int) sequence & (SLOTS - 1);
        if (length != size || last != LAST || sentSequence.getAcquire(slot) != sequence) {
            throw new IllegalStateException(
                    "wrong echo: sequence " + sequence + ", length " + length + " for " + size + ", last byte " + last);
        }
        sentSequence.setRelease(slot, -1); // a second echo of the same message would be wrong
        roundTrips.recordValue(now - sentAt.getAcquire(slot));
        LAST_ECHO_AT.setRelease(this, now);
        RECEIVED.setRelease(this, received + 1);
    }

    /** True once no more messages will be sent and all echoes are back. */
    public boolean finished() {
        return timeUp && received == sent;
    }

    /** How many messages are sent and not yet back. */
    public long outstanding() {
        return sent - received;
    }

    /** True once no more messages will be sent. */
    public boolean timeUp() {
        return timeUp;
    }

    Histogram roundTrips() {
        return roundTrips;
    }

    long messages() {
        return received;
    }

    double seconds() {
        return (lastEchoAt - startedAt) / 1e9;
    }

    // Release stores: the counters have one writer each, and a full fence per message would cost the fast contenders.
    private static final java.lang.invoke.VarHandle SENT;
    private static final java.lang.invoke.VarHandle RECEIVED;
    private static final java.lang.invoke.VarHandle LAST_ECHO_AT;

    static {
        try {
            var lookup = java.lang.invoke.MethodHandles.lookup();
            SENT = lookup.findVarHandle(Load.class, "sent", long.class);
            RECEIVED = lookup.findVarHandle(Load.class, "received", long.class);
            LAST_ECHO_AT = lookup.findVarHandle(Load.class, "lastEchoAt", long.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }
}
