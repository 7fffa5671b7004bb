package org.verbena.transport.spi;

/**
 * How a completion loop waits, and how much it does in one cycle. Providers without completion queues ignore the
 * options that do not apply to them.
 *
 * @param spinNanos how long an idle loop polls before it blocks, in nanoseconds: 0 blocks immediately; {@link
 *     #ADAPTIVE_SPIN} lets the loop choose up to 500 us, from how long it has had to wait recently
 * @param maxCompletionsPerTurn how many completions are handled before tasks and other descriptors, 1 or more
 * @param completionQueueDepth initial entries of each completion queue; it grows with the queue pairs on it
 */
public record CompletionLoopOptions(long spinNanos, int maxCompletionsPerTurn, int completionQueueDepth) {

    /** Spin while work arrives often, and yield to other threads between two polls. */
    public static final long ADAPTIVE_SPIN = -1;

    /** Adaptive spin, 256 completions per cycle, queues of 1024. */
    public static final CompletionLoopOptions DEFAULTS = new CompletionLoopOptions(ADAPTIVE_SPIN, 256, 1024);

    /** Checks ranges. */
    public CompletionLoopOptions {
        if (spinNanos < ADAPTIVE_SPIN) {
            throw new IllegalArgumentException("spinNanos " + spinNanos + " is below -1 (adaptive)");
        }
        if (maxCompletionsPerTurn < 1) {
            throw new IllegalArgumentException("maxCompletionsPerTurn " + maxCompletionsPerTurn + " is below 1");
        }
        if (completionQueueDepth < 1) {
            throw new IllegalArgumentException("completionQueueDepth " + completionQueueDepth + " is below 1");
        }
    }
}
