package org.verbena.transport;

/**
 * How a completion loop waits, and how much it does in one cycle. Providers without completion queues ignore the
 * options that do not apply to them.
 *
 * @param spinNanos how long an idle loop polls before it blocks, in nanoseconds: 0 blocks immediately; {@link
 *     #ADAPTIVE_SPIN} lets the loop choose up to 500 us, from how long it has had to wait recently, and 0 for a while
 *     where other threads take a quarter of its polling time
 * @param maxCompletionsPerTurn how many completions are handled before tasks and other descriptors, 1 or more
 * @param completionQueueDepth initial entries of each completion queue; it grows with the queue pairs on it
 * @param sharedReceiveDepth receives of the loop's shared receive queue on each device, 1 to 2^20; {@link
 *     #PROVIDER_DEFAULT} for what the provider has by default, as far as the device goes. A connection that asks for
 *     the queue fails if the device has fewer, with its limit
 * @param transferBudgetBytes how many bytes of long reads and writes the loop's connections have out at once on each
 *     device, messages that are read from peers included, 1 or more: what exceeds it takes turns, connection by
 *     connection
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
     * What one connection has out at the most when it reads messages of its peer with the default read depth: eight
     * reads of 1 MiB. So a connection that is alone does not wait for them, and its own reads and writes keep a path of
     * 100 Gbit/s full whose round trip takes up to 0.6 ms.
     */
    public static final long DEFAULT_TRANSFER_BUDGET_BYTES = 8 << 20;

    /**
     * Adaptive spin, 256 completions per cycle, queues of 1024, shared receive queues as the provider has them, 8 MiB
     * of long reads and writes.
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
