package org.verbena.transport.verbs;

import java.util.concurrent.TimeUnit;

/**
 * How far the end of an endpoint is: when everything that was posted is back, so that its queue pair can be destroyed. It
 * is told what happens and says what to do next. The loop's thread alone.
 *
 * <pre>{@code
 *   error state asked for --inErrorState--> work comes back, flushed --all is back, or silence--> POLL --polled--> DESTROY
 * }</pre>
 *
 * <p>Without a shared receive queue POLL is left out.
 */
final class Draining {
    /** In a queue pair in its error state the rest is lost if nothing came for so long; destroying it is safe at any time. */
    private static final long SILENCE_NANOS = TimeUnit.MILLISECONDS.toNanos(50);

    /** What is to be done. */
    enum Step {
        /** Nothing: something is still to come. */
        WAIT,
        /** Take all completions off the queues, then say so with {@link #polledEmpty}. */
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
            // Adapters throw away the completions of a queue pair that is destroyed, and the shared receives with them.
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
     * Looks whether the device has fallen silent.
     *
     * @param now System.nanoTime()
     * @return whether it has, so that {@link #next} waits no more
     */
    boolean isSilent(long now) {
        isSilent |= isInErrorState && now - lastProgressNanos > SILENCE_NANOS;
        return isSilent;
    }
}
