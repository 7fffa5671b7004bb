package org.verbena.transport.stat;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/** The row of one connection. Its loop writes it, except where a method says otherwise. */
public final class ConnectionRow extends StatRow implements AutoCloseable {
    /** How many counters {@link #counted} takes. */
    public static final int COUNTERS = StatLayout.COUNTER_COUNT;

    ConnectionRow(
            StatFile file,
            int index,
            MemorySegment memory,
            String provider,
            String reason,
            String role,
            String framing,
            long nowNanos) {
        super(file, index, memory);
        begin(row -> {
            put(StatLayout.THREAD, Thread.currentThread().threadId());
            put(StatLayout.BEGUN, nowNanos);
            put(StatLayout.LAST_ACTIVITY, nowNanos);
            StatLayout.putText(row, StatLayout.PROVIDER, StatLayout.NAME_BYTES, provider);
            StatLayout.putText(row, StatLayout.REASON, StatLayout.REASON_BYTES, reason);
            StatLayout.putText(row, StatLayout.ROLE, StatLayout.WORD_BYTES, role);
            StatLayout.putText(row, StatLayout.FRAMING, StatLayout.WORD_BYTES, framing);
        });
    }

    /**
     * The addresses are known.
     *
     * @param local of this end
     * @param peer of the other
     */
    public void addresses(@Nullable String local, @Nullable String peer) {
        change(row -> {
            StatLayout.putText(row, StatLayout.LOCAL, StatLayout.ADDRESS_BYTES, local);
            StatLayout.putText(row, StatLayout.PEER, StatLayout.ADDRESS_BYTES, peer);
        });
    }

    /**
     * The connection is in another phase.
     *
     * @param name of the phase
     */
    public void phase(String name) {
        changeText(StatLayout.PHASE, StatLayout.WORD_BYTES, name);
    }

    /**
     * Both ends have agreed.
     *
     * @param peerWindow messages that the peer accepts at first
     */
    public void agreed(int peerWindow) {
        put(StatLayout.PEER_WINDOW, peerWindow);
    }

    /**
     * The counters, at times.
     *
     * @param values those of {@code MessageStatistics} in its order, at least {@link #COUNTERS}
     * @param stalledSinceNanos since when messages wait for credits, or 0
     */
    public void counted(long[] values, long stalledSinceNanos) {
        for (int i = 0; i < COUNTERS; i++) {
            put(StatLayout.COUNTERS + (long) i * Long.BYTES, values[i]);
        }
        put(StatLayout.STALLED_SINCE, stalledSinceNanos);
        file().wake();
    }

    /**
     * Frames were sent or received.
     *
     * @param nowNanos {@link System#nanoTime()}
     */
    public void active(long nowNanos) {
        put(StatLayout.LAST_ACTIVITY, nowNanos);
    }

    /**
     * A request has its answer. One load and one store.
     *
     * @param nanos how long it took
     */
    public void answered(long nanos) {
        long offset = StatLayout.BUCKETS + (long) LatencyHistogram.bucket(nanos) * Long.BYTES;
        put(offset, get(offset) + 1);
    }

    /**
     * Something failed without ending the connection. Any thread.
     *
     * @param text what and why
     */
    public void failed(String text) {
        change(row -> {
            put(StatLayout.ERROR_MILLIS, System.currentTimeMillis());
            StatLayout.putText(row, StatLayout.ERROR, StatLayout.ERROR_BYTES, text);
        });
    }

    /**
     * The program has named the peer. Any thread.
     *
     * @param name of its own choice
     */
    public void label(String name) {
        changeText(StatLayout.LABEL, StatLayout.LABEL_BYTES, name);
    }

    /** The peer has missed a message that was for many. Any thread. */
    public void missed() {
        change(row -> put(StatLayout.MISSED, get(StatLayout.MISSED) + 1));
    }

    /** The connection has ended; another may have the row. Idempotent. */
    @Override
    public void close() {
        if (endRow()) {
            file().freeConnection(index());
        }
    }
}
