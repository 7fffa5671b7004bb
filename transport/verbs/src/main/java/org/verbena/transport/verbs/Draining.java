package org.verbena.transport.verbs;

import java.util.concurrent.TimeUnit;

/**
 * Tracks the end of an endpoint: everything that was posted must have come back before its queue pair is destroyed. It
 * is given events and returns the next step. Not thread-safe; confined to the loop's thread.
 */
final class Draining {
    /**
     * If nothing has come for so long from a queue pair in its error state, the rest is lost; destroying the queue pair
     * is safe at any time.
     */
    private static final long SILENCE_NANOS = TimeUnit.MILLISECONDS.toNanos(50);

    /** The next step. */
    enum Step {
        /** Nothing: something is still to come. */
        WAIT,
        /** Take all completions off the queues, then call {@link #polledEmpty}. */
        POLL,
        /** Destroy the queue pair. */
        DESTROY
    }

    private boolean isInErrorState;
    private boolean isLastReceiveTaken;
    private boolean isPollAsked;
    private boolean isPolledEmpty;
    private boolean isDestroyAsked;
    private boolean isSilent;
    private long lastProgressNanos;

    /** A completion came. */
    void noteProgress() {
        lastProgressNanos = System.nanoTime();
    }

    /** The queue pair is in its error state, or there is none. */
    void inErrorState() {
        isInErrorState = true;
        noteProgress();
    }

    /** The device has given back all that it took of the shared receive queue. */
    void lastReceiveTaken() {
        isLastReceiveTaken = true;
    }

    /** What {@link Step#POLL} asked for is done. */
    void polledEmpty() {
        isPolledEmpty = true;
    }

    /**
     * What is to be done now. Each step is asked for once.
     *
     * @param isAllBack whether all work of the endpoint's own queues has completed
     * @param shares whether its receives come from a shared queue that exists
     * @param hasQueuePair whether there is a queue pair, which may have taken some of them
     */
    Step next(boolean isAllBack, boolean shares, boolean hasQueuePair) {
        if (!isInErrorState || isDestroyAsked) {
            return Step.WAIT;
        }
        boolean isSharedBack = !shares || !hasQueuePair || isLastReceiveTaken;
        if (!isSilent && !(isAllBack && isSharedBack)) {
            return Step.WAIT;
        }
        if (shares && !isPolledEmpty) {
            // Adapters discard the completions of a queue pair that is destroyed, and the shared receives with them.
            Step step = isPollAsked ? Step.WAIT : Step.POLL;
            isPollAsked = true;
            return step;
        }
        isDestroyAsked = true;
        return Step.DESTROY;
    }

    /** Whether nothing but the end of the queue pair is still to come. */
    boolean isOver() {
        return isDestroyAsked;
    }

    /**
     * Checks whether the device has fallen silent.
     *
     * @param now System.nanoTime()
     * @return whether it has, so that {@link #next} waits no more
     */
    boolean isSilent(long now) {
        isSilent |= isInErrorState && now - lastProgressNanos > SILENCE_NANOS;
        return isSilent;
    }
}
