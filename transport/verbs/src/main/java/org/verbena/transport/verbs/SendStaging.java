package org.verbena.transport.verbs;

import org.jspecify.annotations.Nullable;
import org.verbena.verbs.SendQueue;

/**
 * What is staged on a send queue: which work requests are signalled, when they go to the device, and how many it was
 * never given. Not thread-safe; confined to the loop's thread.
 */
final class SendStaging {
    /** One signalled work request in so many at the least, so that slots come back while a long batch is under way. */
    private static final int MAX_UNSIGNALLED = 32;

    /** Receives what the device refuses. */
    interface Refusals {
        /**
         * The device did not take all that was staged.
         *
         * @param errno why
         * @param taken how many of those that are out it has taken
         * @param out how many are out
         */
        void onSendsRefused(int errno, int taken, int out);
    }

    private final WorkRing ring;
    private final Refusals refusals;
    private @Nullable SendQueue queue;
    private int index;
    private int generation;
    private int maxUnsignalled;
    private int unsignalled;

    /** How many of those that are out the device was never given. */
    private int unposted;

    /**
     * Nothing is staged.
     *
     * @param ring what is out
     * @param refusals receives what the device refuses
     */
    SendStaging(WorkRing ring, Refusals refusals) {
        this.ring = ring;
        this.refusals = refusals;
    }

    /**
     * The queue is there.
     *
     * @param made the queue
     * @param signalsAll whether each work request is signalled
     * @param endpointIndex of the ids of its work requests
     * @param endpointGeneration and this
     */
    void prepared(SendQueue made, boolean signalsAll, int endpointIndex, int endpointGeneration) {
        queue = made;
        index = endpointIndex;
        generation = endpointGeneration;
        maxUnsignalled = signalsAll ? 1 : Math.clamp(ring.depth() / 4, 1, MAX_UNSIGNALLED);
    }

    SendQueue queue() {
        return VerbsEndpoint.required(queue);
    }

    /** The id of a work request. */
    long id(int kind, int slot) {
        return WorkRequestId.of(index, generation, kind, slot);
    }

    /** Whether the next work request is to be signalled. */
    boolean signalsNext() {
        return unsignalled + 1 >= maxUnsignalled;
    }

    /** A work request was staged. */
    void staged(boolean signalled) {
        unsignalled = signalled ? 0 : unsignalled + 1;
    }

    /**
     * Gives what is staged to the device.
     *
     * @return false if it refused: {@link Refusals#onSendsRefused} has been called
     */
    boolean flush() {
        SendQueue staged = queue;
        if (staged == null || staged.stagedWrs() == 0) {
            return true;
        }
        if (unsignalled > 0) {
            staged.signalLast();
            unsignalled = 0;
        }
        int errno = staged.tryFlush();
        if (errno != 0) {
            refusals.onSendsRefused(errno, ring.count() - staged.stagedWrs(), ring.count());
            return false;
        }
        return true;
    }

    /** Forgets what is staged: it stays out. */
    void discard() {
        if (queue != null) {
            unposted = queue.stagedWrs();
            queue.discard();
        }
    }

    /** Whether all that are out were never given to the device. */
    boolean areAllBack() {
        return ring.count() == unposted;
    }
}
