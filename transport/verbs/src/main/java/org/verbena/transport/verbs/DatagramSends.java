package org.verbena.transport.verbs;

import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.verbs.SendQueue;
import org.verbena.verbs.work.SendFlags;

/**
 * Posts the sends of a datagram endpoint and handles their completions, in a ring of slots. Each slot has its
 * destination, whose address handle has to stay until the send has completed. A completion of a slot completes all
 * before it, which were not signalled. Not thread-safe; confined to the loop's thread.
 */
final class DatagramSends {
    /** Receives the outcomes of sends. */
    interface Events extends SendStaging.Refusals {
        /** A send is done. */
        void onSendCompleted(long workId, WorkStatus status);
    }

    /** A send, with what it goes to. */
    private static final class Slot extends WorkSlot {
        private int lengthBytes;
        private @Nullable VerbsDestination destination;
    }

    private final Events events;
    private final WorkRing<Slot> ring;
    private final SendStaging staging;
    private int maxInlineBytes;

    DatagramSends(int depth, Events events) {
        this.events = events;
        ring = new WorkRing<>(depth, Slot::new);
        staging = new SendStaging(ring, events);
    }

    /** The device has less than was wished for. Before {@link #prepared}. */
    void limit(int depth) {
        ring.limit(depth);
    }

    /** The queue is there. */
    void prepared(SendQueue made, int inlineBytes, int endpointIndex, int endpointGeneration) {
        staging.prepared(made, false, false, false, endpointIndex, endpointGeneration);
        maxInlineBytes = inlineBytes;
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
        return slot < ring.slots() && ring.position(slot) < ring.count();
    }

    /** Whether all that are out were never given to the device. */
    boolean areAllBack() {
        return staging.areAllBack();
    }

    /**
     * Stages a send.
     *
     * @return false if the device refused what had been staged before: {@link Events#onSendsRefused} has been called
     * @throws IllegalStateException memory of it is closed; nothing is staged
     */
    boolean post(
            long workId, ScatterGatherList sges, VerbsDestination to, boolean hasImmediateData, int immediateData) {
        SendQueue queue = staging.queue();
        if (queue.isFull() && !flush()) {
            return false;
        }
        Slot slot = ring.slot(ring.next());
        slot.hold(sges);
        try {
            stage(queue, ring.next(), sges, to, hasImmediateData, immediateData);
        } catch (RuntimeException refused) {
            slot.release();
            throw refused;
        }
        slot.workId = workId;
        slot.destination = to;
        slot.lengthBytes = (int) sges.totalBytes();
        to.sending();
        ring.take();
        return true;
    }

    private void stage(
            SendQueue queue,
            int slot,
            ScatterGatherList sges,
            VerbsDestination to,
            boolean hasImmediateData,
            int immediateData) {
        long wrId = staging.id(WorkRequestId.SEND, slot);
        boolean signalled = staging.signalsNext();
        long bytes = sges.totalBytes();
        int flags = (signalled ? SendFlags.SIGNALED : 0)
                // Without data there is nothing to copy, and some devices refuse the flag then.
                | (bytes > 0 && bytes <= maxInlineBytes ? SendFlags.INLINE : 0);
        if (hasImmediateData) {
            queue.sendWithImmediate(wrId, flags, immediateData);
        } else {
            queue.send(wrId, flags);
        }
        to.address(queue);
        for (int i = 0; i < sges.count(); i++) {
            queue.uncheckedSge(sges.address(i), sges.length(i), sges.region(i).localKey());
        }
        staging.staged(signalled, true);
    }

    /**
     * Gives what is staged to the device.
     *
     * @return false if it refused: {@link Events#onSendsRefused} has been called
     */
    boolean flush() {
        return staging.flush();
    }

    /** Nothing more is sent: what is staged stays out, and {@link #completeRest} completes it. */
    void end() {
        staging.end();
    }

    /** A slot was done or failed; all before it, which have no completion of their own, were done. */
    void onCompletion(int slot, WorkStatus status) {
        staging.signalledDone();
        for (int i = ring.position(slot); i > 0; i--) {
            complete(WorkStatus.SUCCESS);
        }
        complete(status);
    }

    private void complete(WorkStatus status) {
        Slot done = ring.free();
        VerbsDestination to = Objects.requireNonNull(done.destination);
        done.destination = null;
        to.sent();
        events.onSendCompleted(done.workId, status);
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
        Slot sent = ring.slot(slot);
        return "a datagram of " + sent.lengthBytes + " bytes to " + sent.destination;
    }
}
