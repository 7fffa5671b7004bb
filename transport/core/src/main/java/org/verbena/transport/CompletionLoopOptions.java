package org.verbena.transport;

/**
 * How a completion loop waits, and how much it does in one cycle. Providers without completion queues ignore the
 * options that do not apply to them.
 *
 * @param spinNanos how long an idle loop polls before it blocks, in nanoseconds: 0 blocks immediately; {@link
 *     #ADAPTIVE_SPIN} lets the loop choose: up to 500 us, from its recent waits, or 0 for a while when other threads
 *     take a quarter of its polling time
 * @param maxCompletionsPerTurn how many completions are handled before tasks and other descriptors, 1 or more
 * @param completionQueueDepth initial entries of each completion queue; it grows with the queue pairs on it
 * @param sharedReceiveDepth receives of the loop's shared receive queue on each device, 1 to 2^20; {@link
 * #PROVIDER_DEFAULT} for the provider's default, capped at the device's limit. If the device has fewer than the number
 * given here, a connection that asks for the queue fails, and the message names the limit
 * @param transferBudgetBytes the most bytes of long reads and writes, messages read from peers included, that the
 *     loop's connections have outstanding on each device, 1 or more; beyond it the connections take turns
 */
public record CompletionLoopOptions(
        long spinNanos,
        int maxCompletionsPerTurn,
        int completionQueueDepth,
        int sharedReceiveDepth,
        long transferBudgetBytes) {

    /** Spin while work arrives often, and yield to other threads between two polls. */
    public static final long ADAPTIVE_SPIN = -1;

    /** Leaves a depth to the provider. */
    public static final int PROVIDER_DEFAULT = -1;

    /** More receives would take 16 GiB of the usual length. */
    private static final int MAX_SHARED_RECEIVES = 1 << 20;

    /**
     * The most that one connection has outstanding when it reads its peer's messages with the default read depth: eight
     * reads of 1 MiB. So a single connection does not wait for the budget, and its own reads and writes fill a path of
     * 100 Gbit/s with a round trip of up to 0.6 ms.
     */
    public static final long DEFAULT_TRANSFER_BUDGET_BYTES = 8 << 20;

    /**
     * Adaptive spin, 256 completions per cycle, queues of 1024, shared receive queues of the provider's default depth,
     * 8 MiB of long reads and writes.
     */
    public static final CompletionLoopOptions DEFAULTS = new CompletionLoopOptions(ADAPTIVE_SPIN, 256, 1024);

    /**
     * Options with the provider's depth of shared receive queues.
     *
     * @param spinNanos as above
     * @param maxCompletionsPerTurn as above
     * @param completionQueueDepth as above
     */
    public CompletionLoopOptions(long spinNanos, int maxCompletionsPerTurn, int completionQueueDepth) {
        this(spinNanos, maxCompletionsPerTurn, completionQueueDepth, PROVIDER_DEFAULT);
    }

    /**
     * Options with the default budget for long reads and writes.
     *
     * @param spinNanos as above
     * @param maxCompletionsPerTurn as above
     * @param completionQueueDepth as above
     * @param sharedReceiveDepth as above
     */
    public CompletionLoopOptions(
            long spinNanos, int maxCompletionsPerTurn, int completionQueueDepth, int sharedReceiveDepth) {
        this(spinNanos, maxCompletionsPerTurn, completionQueueDepth, sharedReceiveDepth, DEFAULT_TRANSFER_BUDGET_BYTES);
    }

    /**
     * These options with another budget for long reads and writes.
     *
     * @param value {@link #transferBudgetBytes()}; {@link Long#MAX_VALUE} for no limit
     * @return a copy
     */
    public CompletionLoopOptions withTransferBudgetBytes(long value) {
        return new CompletionLoopOptions(
                spinNanos, maxCompletionsPerTurn, completionQueueDepth, sharedReceiveDepth, value);
    }

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
        if (sharedReceiveDepth != PROVIDER_DEFAULT
                && (sharedReceiveDepth < 1 || sharedReceiveDepth > MAX_SHARED_RECEIVES)) {
            throw new IllegalArgumentException(
                    "sharedReceiveDepth " + sharedReceiveDepth + " is not within 1 to " + MAX_SHARED_RECEIVES);
        }
        if (transferBudgetBytes < 1) {
            throw new IllegalArgumentException("transferBudgetBytes " + transferBudgetBytes + " is below 1");
        }
    }
}
