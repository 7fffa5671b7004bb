package org.verbena.api.internal.loop;

import org.verbena.transport.spi.LoopClock;

/**
 * How long a client waits whose request this thread handles, for the requests that the handler sends on this thread.
 *
 * <p>An event loop has one of these, bound for its whole life and set for each handler, so that it costs a handler two
 * writes. Other threads have one for each handler, bound as long as that runs: what such a handler forks in a
 * structured way inherits it.
 */
public final class HandlerTime {
    private static final ScopedValue<HandlerTime> OF_THREAD = ScopedValue.newInstance();
    private static final HandlerTime NONE = new HandlerTime(LoopClock.system());

    private final LoopClock clock;

    /** A time of the clock that is not 0; 0 for no limit. */
    private long untilNanos;

    private HandlerTime(LoopClock clock) {
        this.clock = clock;
    }

    /** Runs an event loop. */
    static void runLoop(LoopClock clock, Runnable loop) {
        ScopedValue.where(OF_THREAD, new HandlerTime(clock)).run(loop);
    }

    /**
     * Runs a handler on a thread that is no event loop.
     *
     * @param clock of the loop that the request came to
     * @param deadlineNanos a time of that clock
     */
    public static <X extends Throwable> void run(
            LoopClock clock, long deadlineNanos, ScopedValue.CallableOp<?, X> handler) throws X {
        HandlerTime time = new HandlerTime(clock);
        time.untilNanos = notZero(deadlineNanos);
        ScopedValue.where(OF_THREAD, time).call(handler);
    }

    /**
     * A handler begins on an event loop, which may have begun another one.
     *
     * @param limited whether its client has said how long it waits
     * @param deadlineNanos a time of the loop's clock, if so
     * @return what to give to {@link #end} after the handler
     */
    public static long begin(boolean limited, long deadlineNanos) {
        HandlerTime time = OF_THREAD.orElse(NONE);
        long before = time.untilNanos;
        time.set(limited ? notZero(deadlineNanos) : 0);
        return before;
    }

    /** A handler has ended on an event loop. */
    public static void end(long before) {
        OF_THREAD.orElse(NONE).set(before);
    }

    private void set(long nanos) {
        if (this != NONE) {
            untilNanos = nanos;
        }
    }

    private static long notZero(long nanos) {
        return nanos | 1;
    }

    /** Whether this thread handles a request whose client has said how long it waits. */
    public static boolean isLimited() {
        return OF_THREAD.orElse(NONE).untilNanos != 0;
    }

    /** Whether nobody waits any more for the answer to the request that this thread handles. */
    public static boolean isOver() {
        HandlerTime time = OF_THREAD.orElse(NONE);
        return time.untilNanos != 0 && time.untilNanos - time.clock.nanoTime() <= 0;
    }

    /** A timeout, or what is left of the time of the request that this thread handles: at least 1. */
    public static long atMost(long timeoutNanos) {
        HandlerTime time = OF_THREAD.orElse(NONE);
        long until = time.untilNanos;
        return until == 0 ? timeoutNanos : Math.max(1, Math.min(timeoutNanos, until - time.clock.nanoTime()));
    }
}
