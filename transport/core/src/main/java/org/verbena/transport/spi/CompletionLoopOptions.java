package org.verbena.transport.spi;

/**
 * How a completion loop waits and how much it does in a turn. Providers without completion queues ignore what has no
 * meaning for them.
 *
 * @param spinNanos how long an idle loop polls before it blocks, in nanoseconds: 0 blocks at once,
 *     {@link #ADAPTIVE_SPIN} lets the loop choose between 0 and 500 us by how long it has had to wait lately
 * @param maxCompletionsPerTurn how many completions are handled before tasks and other descriptors get their turn, 1 or more
 * @param completionQueueDepth initial entries of each completion queue; it grows with the queue pairs on it
 */
public record CompletionLoopOptions(long spinNanos, int maxCompletionsPerTurn, int completionQueueDepth) {

    /** Spin while work comes often, and let other threads have the processor between two polls. */
    public static final long ADAPTIVE_SPIN = -1;

    /** Adaptive spin, 256 completions a turn, queues of 1024. */
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
