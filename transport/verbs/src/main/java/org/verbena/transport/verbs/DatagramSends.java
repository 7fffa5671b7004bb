package org.verbena.transport.verbs;

import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.WorkStatus;
import org.verbena.verbs.SendQueue;
import org.verbena.verbs.work.SendFlags;

/**
 * A datagram endpoint's way to its send queue and back: a ring of slots, each with its destination, whose address
 * handle has to stay until the send has completed. A completion of a slot completes all before it, which were not
 * signalled. The loop's thread alone.
 */
final class DatagramSends {
    /** One signalled send in so many at the least, so that slots come back while a long batch is under way. */
    private static final int MAX_UNSIGNALLED = 32;

    /** Receives the outcomes of sends. */
    interface Events {
        /** A send is done. */
        void onSendCompleted(long workId, WorkStatus status);

        /** The device did not take all that was staged. */
        void onSendsRefused(int errno, int taken, int out);
    }

    private final Events events;
    private final WorkRing ring;
    private final @Nullable VerbsDestination[] destinations;
    private final int[] lengths;
    private @Nullable SendQueue queue;
    private int index;
    private int generation;
    private int maxInlineBytes;
    private int unsignalled;

    /** How many of those that are out the device was never given. */
    private int unposted;

    DatagramSends(int depth, int maxSges, Events events) {
        this.events = events;
        ring = new WorkRing(depth, maxSges);
        destinations = new VerbsDestination[depth];
        lengths = new int[depth];
    }

    /** The queue is there. */
    void prepared(SendQueue made, int endpointIndex, int endpointGeneration) {
        queue = made;
        index = endpointIndex;
        generation = endpointGeneration;
        maxInlineBytes = made.maxInlineBytes();
    }

    int depth() {
        return ring.depth();
    }

    int free() {
        return ring.depth() - ring.count();
    }

    int count() {
        return ring.count();
    }

    boolean isOut(int slot) {
        return slot < ring.depth() && ring.position(slot) < ring.count();
    }

    /** Whether all that are out were never given to the device. */
    boolean areAllBack() {
        return ring.count() == unposted;
    }

    /**
     * Stages a send.
     *
     * @return false if the device refused what had been staged before: {@link Events#onSendsRefused} has been called
     * @throws IllegalStateException memory of it is closed; nothing is staged
     */
    boolean post(
            long workId, ScatterGatherList pieces, VerbsDestination to, boolean hasImmediateData, int immediateData) {
        SendQueue staging = Objects.requireNonNull(queue);
        if (staging.isFull() && !flush()) {
            return false;
        }
        int slot = ring.next();
        ring.holdForNext(pieces);
        try {
            stage(staging, slot, pieces, to, hasImmediateData, immediateData);
        } catch (RuntimeException refused) {
            ring.releaseNext();
            throw refused;
        }
        destinations[slot] = to;
        lengths[slot] = (int) pieces.totalBytes();
        to.sending();
        ring.take(workId);
        return true;
    }

    private void stage(
            SendQueue staging,
            int slot,
            ScatterGatherList pieces,
            VerbsDestination to,
            boolean hasImmediateData,
            int immediateData) {
        long wrId = WorkRequestId.of(index, generation, WorkRequestId.SEND, slot);
        boolean signalled = unsignalled + 1 >= MAX_UNSIGNALLED;
        long bytes = pieces.totalBytes();
        int flags = (signalled ? SendFlags.SIGNALED : 0)
                // Without data there is nothing to copy, and some devices refuse the flag then.
                | (bytes > 0 && bytes <= maxInlineBytes ? SendFlags.INLINE : 0);
        if (hasImmediateData) {
            staging.sendWithImmediate(wrId, flags, immediateData);
        } else {
            staging.send(wrId, flags);
        }
        to.address(staging);
        for (int i = 0; i < pieces.count(); i++) {
            staging.uncheckedPiece(
                    pieces.address(i), pieces.length(i), pieces.region(i).localKey());
        }
        unsignalled = signalled ? 0 : unsignalled + 1;
    }

    /**
     * Gives what is staged to the device.
     *
     * @return false if it refused: {@link Events#onSendsRefused} has been told
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
            events.onSendsRefused(errno, ring.count() - staged.stagedWrs(), ring.count());
            return false;
        }
        return true;
    }

    /** Forgets what is staged: it stays out, and {@link #completeRest} completes it. */
    void discard() {
        if (queue != null) {
            unposted = queue.stagedWrs();
            queue.discard();
        }
    }

    /** A slot was done or failed; all before it, which have no completion of their own, were done. */
    void onCompletion(int slot, WorkStatus status) {
        for (int i = ring.position(slot); i > 0; i--) {
            complete(WorkStatus.SUCCESS);
        }
        complete(status);
    }

    private void complete(WorkStatus status) {
        int slot = ring.head();
        long workId = ring.workId(slot);
        VerbsDestination to = Objects.requireNonNull(destinations[slot]);
        destinations[slot] = null;
        ring.free();
        to.sent();
        events.onSendCompleted(workId, status);
    }

    /**
     * Completes what is out still: nothing comes any more.
     *
     * @param isQueuePairGone false if the device may still use the memory, which then stays registered for ever
     */
    void completeRest(boolean isQueuePairGone) {
        while (ring.count() > 0) {
            if (!isQueuePairGone) {
                ring.forgetHead();
            }
            complete(WorkStatus.FLUSHED);
        }
    }

    /** A send in words. */
    String describe(int slot) {
        return "a datagram of " + lengths[slot] + " bytes to " + destinations[slot];
    }
}
