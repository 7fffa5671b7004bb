package org.verbena.transport.spi;

/**
 * How long an idle loop polls before it blocks. Blocking and being woken costs tens of microseconds, here and at the
 * peer that waits for the answer; polling costs a processor. So it pays to spin while work arrives often, and not to
 * spin at all when it does not. For one loop's thread.
 *
 * <p>Adaptive: a wait below 500 us that the budget did not cover doubles it, a wait above that halves it, down to 0. On
 * a machine with one processor it stays 0, because nothing else can run while the loop spins.
 */
public final class SpinBudget {
    /** The longest wait that is worth spinning for. */
    static final long MAX_NANOS = 500_000;

    /** Smaller budgets are indistinguishable from a single poll. */
    static final long MIN_NANOS = 2_000;

    private final boolean adaptive;
    private long nanos;

    /**
     * Creates a budget for one loop.
     *
     * @param spinNanos as in {@link CompletionLoopOptions#spinNanos()}
     */
    public SpinBudget(long spinNanos) {
        this(spinNanos, Runtime.getRuntime().availableProcessors());
    }

    SpinBudget(long spinNanos, int processors) {
        boolean chosen = spinNanos == CompletionLoopOptions.ADAPTIVE_SPIN;
        adaptive = chosen && processors > 1;
        nanos = chosen ? 0 : spinNanos;
    }

    /**
     * Whether the budget is adaptive: then the loop reports each wait with {@link #waited}, and yields its processor
     * between polls.
     *
     * @return false if it is fixed
     */
    public boolean isAdaptive() {
        return adaptive;
    }

    /**
     * How long to spin now.
     *
     * @return in nanoseconds; 0 means not at all
     */
    public long nanos() {
        return nanos;
    }

    /**
     * Reports a wait that is over. No effect on a fixed budget.
     *
     * @param waitedNanos its length, spinning and blocked, in nanoseconds
     */
    public void waited(long waitedNanos) {
        if (!adaptive) {
            return;
        }
        if (waitedNanos >= MAX_NANOS) {
            nanos = nanos <= MIN_NANOS ? 0 : nanos / 2;
        } else if (waitedNanos > nanos) {
            nanos = Math.clamp(nanos * 2, MIN_NANOS, MAX_NANOS);
        }
    }
}
