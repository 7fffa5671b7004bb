package org.verbena.transport.verbs;

import org.verbena.transport.spi.CompletionLoopOptions;

/**
 * How long an idle loop polls before it blocks. Blocking and being woken costs some microseconds, polling costs a processor: so spin as long
 * as it has paid lately, and not at all when nothing comes.
 *
 * <p>Adaptive: a completion that comes while spinning, or so soon after blocking that spinning would have seen it, doubles the budget, up to 50 us; a
 * spin in vain halves it, down to 0.
 */
final class SpinBudget {
    /** Beyond this the wake-up it saves is no longer worth it. */
    static final long MAX_NANOS = 50_000;

    /** Less cannot be told from one poll. */
    static final long MIN_NANOS = 2_000;

    private final boolean adaptive;
    private long nanos;

    SpinBudget(long spinNanos) {
        adaptive = spinNanos == CompletionLoopOptions.ADAPTIVE_SPIN;
        nanos = adaptive ? 0 : spinNanos;
    }

    /** Whether the budget follows what comes. */
    boolean isAdaptive() {
        return adaptive;
    }

    /** How long to spin now; 0 for not at all. */
    long nanos() {
        return nanos;
    }

    /** A completion came while spinning. */
    void paid() {
        if (adaptive) {
            nanos = Math.min(MAX_NANOS, nanos * 2);
        }
    }

    /** Nothing came while spinning. */
    void wasInVain() {
        if (adaptive) {
            nanos = nanos <= MIN_NANOS ? 0 : nanos / 2;
        }
    }

    /** A completion woke the loop that had blocked for this long. */
    void wokenAfter(long blockedNanos) {
        if (adaptive && blockedNanos < MAX_NANOS) {
            nanos = Math.max(MIN_NANOS, Math.min(MAX_NANOS, nanos * 2));
        }
    }
}
