package org.verbena.transport.stat;

import java.lang.foreign.MemorySegment;

/** The row of one event loop. Its thread writes it. */
public final class LoopRow extends StatRow implements AutoCloseable {
    LoopRow(StatFile file, int index, MemorySegment memory) {
        super(file, index, memory);
        begin(row -> {});
    }

    /**
     * The loop has begun: names the calling thread.
     *
     * @param provider the provider of the loop
     * @param nowNanos {@link System#nanoTime()}
     */
    public void began(String provider, long nowNanos) {
        Thread thread = Thread.currentThread();
        change(row -> {
            put(StatLayout.LOOP_THREAD, thread.threadId());
            put(StatLayout.LOOP_STATE, StatLayout.RUNNING);
            put(StatLayout.LOOP_LAST_TURN, nowNanos);
            StatLayout.putText(row, StatLayout.LOOP_NAME, StatLayout.LOOP_NAME_BYTES, thread.getName());
            StatLayout.putText(row, StatLayout.LOOP_PROVIDER, StatLayout.NAME_BYTES, provider);
        });
    }

    /**
     * The loop has polled.
     *
     * @param polls how often, so far
     */
    public void polled(long polls) {
        put(StatLayout.LOOP_POLLS, polls);
    }

    /**
     * The other counters, at times.
     *
     * @param emptyPolls polls that found nothing
     * @param completions what the others found
     * @param largestPoll the most of one poll
     * @param spinNanos the time spent polling without finding anything, in nanoseconds
     * @param nowNanos {@link System#nanoTime()}
     */
    public void counted(long emptyPolls, long completions, long largestPoll, long spinNanos, long nowNanos) {
        put(StatLayout.LOOP_EMPTY_POLLS, emptyPolls);
        put(StatLayout.LOOP_COMPLETIONS, completions);
        put(StatLayout.LOOP_LARGEST_POLL, largestPoll);
        put(StatLayout.LOOP_SPIN_NANOS, spinNanos);
        put(StatLayout.LOOP_LAST_TURN, nowNanos);
        file().wake();
    }

    /** The loop is about to block: it has nothing to do. */
    public void waits() {
        put(StatLayout.LOOP_STATE, StatLayout.WAITING);
    }

    /**
     * The loop has something to do.
     *
     * @param nowNanos {@link System#nanoTime()}
     */
    public void runs(long nowNanos) {
        put(StatLayout.LOOP_LAST_TURN, nowNanos);
        put(StatLayout.LOOP_STATE, StatLayout.RUNNING);
        file().wake();
    }

    /** The loop has ended; another may have the row. Idempotent. */
    @Override
    public void close() {
        if (endRow()) {
            file().freeLoop(index());
        }
    }
}
