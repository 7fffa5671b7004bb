package org.verbena.transport.verbs;

import java.util.ArrayDeque;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.verbs.ReceiveQueue;
import org.verbena.verbs.WorkCompletions;
import org.verbena.verbs.work.WorkCompletionOpcode;

/**
 * An endpoint's receives: of its own queue, a ring in which each has a completion, or of its loop's shared queue. Not
 * thread-safe; confined to the loop's thread.
 *
 * <p>What arrives before the connection is known to be up is kept until it is: the peer learns of the connection first.
 */
final class ReceivePath {
    private static final int RECEIVED_WRITE = WorkCompletionOpcode.RECV_RDMA_WITH_IMM.value();

    /** Receives the outcomes of receives. */
    interface Events {
        /**
         * A receive is done.
         *
         * @param workId as posted
         * @param status how it ended
         * @param lengthBytes of the message
         * @param flags of {@link EndpointHandler#onReceiveCompletion}
         * @param immediate data of it
         */
        void onReceiveCompleted(long workId, WorkStatus status, int lengthBytes, int flags, int immediate);

        /** The device completed a receive that is not out, or not the next. */
        void onStrayReceive(int slot);

        /**
         * The device did not take all that was staged.
         *
         * @param errno why
         * @param taken how many of those that are out it has taken
         * @param out how many are out
         */
        void onReceivesRefused(int errno, int taken, int out);
    }

    /** A message that came before the connection was known to be up. */
    private record Early(int kind, int slot, int lengthBytes, int flags, int immediate) {}

    private final Events events;
    private final WorkRing<WorkSlot> ring;
    private final ArrayDeque<Early> early = new ArrayDeque<>();
    private @Nullable VerbsDevice device;
    private @Nullable ReceiveQueue queue;
    private @Nullable VerbsSharedReceiveQueue shared;
    private int maxSges;
    private int index;
    private int generation;

    /** How many of those that are out the device was never given. */
    private int unposted;

    ReceivePath(int depth, int maxSges, Events events) {
        this.events = events;
        this.maxSges = maxSges;
        ring = new WorkRing<>(depth, WorkSlot::new);
    }

    /** Receives come from the loop's queue. */
    void share(VerbsSharedReceiveQueue receives) {
        shared = receives;
    }

    @Nullable VerbsSharedReceiveQueue shared() {
        return shared;
    }

    /**
     * The queue is there.
     *
     * @param made the queue, null with a shared one
     * @param used the device
     * @param endpointIndex of the ids of its work requests
     * @param endpointGeneration and this
     */
    void prepared(@Nullable ReceiveQueue made, VerbsDevice used, int endpointIndex, int endpointGeneration) {
        queue = made;
        device = used;
        index = endpointIndex;
        generation = endpointGeneration;
    }

    /**
     * The device has less than was wished for. Before anything is posted.
     *
     * @param depth receives that may be out
     * @param sges elements of one
     */
    void limit(int depth, int sges) {
        ring.limit(depth);
        maxSges = Math.min(maxSges, sges);
    }

    int maxSges() {
        return maxSges;
    }

    /** The depth of the endpoint's own queue. */
    int depth() {
        return ring.depth();
    }

    boolean isFull() {
        return ring.isFull();
    }

    /** Whether all that are out of the endpoint's own queue were never given to the device. */
    boolean areAllBack() {
        return ring.count() == unposted;
    }

    // ---- posting

    /**
     * Stages a receive.
     *
     * @param workId returned in the completion
     * @param buffers where a message goes
     * @return false if the device refused what had been staged before: {@link Events#onReceivesRefused} has been called
     */
    boolean post(long workId, ScatterGatherList buffers) {
        PostChecks.receive(buffers, maxSges, VerbsEndpoint.required(device).memoryDomain());
        ReceiveQueue staging = VerbsEndpoint.required(queue);
        if (staging.isFull() && !flush()) {
            return false;
        }
        WorkSlot slot = ring.slot(ring.next());
        slot.hold(buffers);
        try {
            staging.receive(WorkRequestId.of(index, generation, WorkRequestId.RECEIVE, ring.next()));
            VerbsEndpoint.required(device).addSges(staging, buffers);
        } catch (RuntimeException refused) {
            slot.release();
            throw refused;
        }
        slot.workId = workId;
        ring.take();
        return true;
    }

    /**
     * Gives what is staged to the device.
     *
     * @return false if it refused: {@link Events#onReceivesRefused} has been called
     */
    boolean flush() {
        ReceiveQueue staged = queue;
        if (staged == null || staged.stagedWrs() == 0) {
            return true;
        }
        int errno = staged.tryFlush();
        if (errno != 0) {
            events.onReceivesRefused(errno, ring.count() - staged.stagedWrs(), ring.count());
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

    // ---- completions

    /** A message came. */
    void onDone(int kind, int slot, WorkCompletions completions, int i) {
        complete(
                kind,
                slot,
                WorkStatus.SUCCESS,
                completions.lengthBytes(i),
                flags(completions, i),
                word(completions, i));
    }

    /** A message came, and the connection is not known to be up. */
    void onEarly(int kind, int slot, WorkCompletions completions, int i) {
        early.add(new Early(kind, slot, completions.lengthBytes(i), flags(completions, i), word(completions, i)));
    }

    private static int flags(WorkCompletions completions, int i) {
        int flags = completions.opcodeValue(i) == RECEIVED_WRITE ? EndpointHandler.REMOTE_WRITE : 0;
        if (completions.hasImmediateData(i)) {
            return flags | EndpointHandler.WITH_IMMEDIATE;
        }
        return completions.hasInvalidatedKey(i) ? flags | EndpointHandler.WITH_INVALIDATE : flags;
    }

    private static int word(WorkCompletions completions, int i) {
        if (completions.hasImmediateData(i)) {
            return completions.immediateData(i);
        }
        return completions.hasInvalidatedKey(i) ? completions.invalidatedKey(i) : 0;
    }

    boolean hasEarly() {
        return !early.isEmpty();
    }

    /**
     * Delivers what came early, before anything that came later.
     *
     * @param wasConnected whether the connection came up; what came is dropped otherwise
     */
    void deliverEarly(boolean wasConnected) {
        Early receive;
        while ((receive = early.poll()) != null) {
            if (wasConnected) {
                complete(
                        receive.kind,
                        receive.slot,
                        WorkStatus.SUCCESS,
                        receive.lengthBytes,
                        receive.flags,
                        receive.immediate);
            } else {
                onFailed(receive.kind, receive.slot, WorkStatus.FLUSHED);
            }
        }
    }

    /** A receive failed or was flushed. */
    void onFailed(int kind, int slot, WorkStatus status) {
        complete(kind, slot, status, 0, 0, 0);
    }

    private void complete(int kind, int slot, WorkStatus status, int length, int flags, int immediate) {
        long workId;
        if (kind == WorkRequestId.SHARED_RECEIVE) {
            VerbsSharedReceiveQueue receives = VerbsEndpoint.required(shared);
            if (!receives.isOut(slot)) {
                events.onStrayReceive(slot);
                return;
            }
            workId = receives.complete(slot);
        } else {
            if (ring.count() == 0 || slot != ring.head()) {
                events.onStrayReceive(slot);
                return;
            }
            workId = ring.free().workId;
        }
        events.onReceiveCompleted(workId, status, length, flags, immediate);
    }

    /** Whether {@link #completeRest} would complete anything. */
    boolean hasRest() {
        return ring.count() > 0 || hasEarly();
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
            onFailed(WorkRequestId.RECEIVE, ring.head(), WorkStatus.FLUSHED);
        }
    }
}
