package org.verbena.bench.stack;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.concurrent.CompletableFuture;

/**
 * Echoes one after the other, with so many out at once, until the thread that both ends run on has used some processor
 * time, and what that thread used for a message that arrived at either: processor time and heap.
 */
final class Series {
    /** Echoes between two checks of the clock. */
    private static final int ECHOES_BETWEEN_CLOCKS = 256;

    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

    /** A message, one way: both of its ends. */
    record Cost(double nanos, double heapBytes, long messages) {}

    final int window;
    private final long durationNanos;
    private final CompletableFuture<Cost> cost = new CompletableFuture<>();
    private int out;
    private boolean isOver;
    private long echoes;
    private long cpuBefore;
    private long heapBefore;

    Series(int window, double seconds) {
        this.window = window;
        durationNanos = (long) (seconds * 1e9);
    }

    /** Before the first {@link #window} messages are sent. */
    void begin() {
        out = window;
        heapBefore = THREADS.getCurrentThreadAllocatedBytes();
        cpuBefore = THREADS.getCurrentThreadCpuTime();
    }

    /**
     * A message came back.
     *
     * @return whether to send another one
     */
    boolean echoed() {
        echoes++;
        if (!isOver && echoes % ECHOES_BETWEEN_CLOCKS == 0 && isTimeUp()) {
            isOver = true;
        }
        if (!isOver) {
            return true;
        }
        if (--out == 0) {
            finish(2 * echoes);
        }
        return false;
    }

    /** Whether the time is up, for layers that count the messages themselves. */
    boolean isTimeUp() {
        return THREADS.getCurrentThreadCpuTime() - cpuBefore > durationNanos;
    }

    /** All is done; {@link #echoed} says so itself. */
    void finish(long messages) {
        long nanos = THREADS.getCurrentThreadCpuTime() - cpuBefore;
        long bytes = THREADS.getCurrentThreadAllocatedBytes() - heapBefore;
        cost.complete(new Cost((double) nanos / messages, (double) bytes / messages, messages));
    }

    void fail(Throwable cause) {
        cost.completeExceptionally(cause);
    }

    /** What a message cost, when the series is over. */
    CompletableFuture<Cost> cost() {
        return cost;
    }
}
