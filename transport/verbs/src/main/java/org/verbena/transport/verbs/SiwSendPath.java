package org.verbena.transport.verbs;

import org.verbena.transport.EndpointCapabilities;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.spi.WorkRequest;
import org.verbena.verbs.SendQueue;
import org.verbena.verbs.ffm.Siw;

/**
 * The way to a send queue of siw, soft iWARP of Linux. It completes a write while a read before it is still under way,
 * and a failure before the work it follows: so each work request is signalled, and its outcome waits in its slot until
 * those before it are known. A read of few bytes on two of the peer's pages is posted in two parts ({@link
 * ShortReads}); the slot is done with the second. Few bytes are sent correctly only if they are inline.
 */
final class SiwSendPath extends SendPath {
    /** What a slot may take of the queue. */
    static final int WORK_REQUESTS_A_SLOT = 2;

    /** The slot whose first part failed, of its own doing; the second is flushed then. */
    private int failedFirstPart = -1;

    private WorkStatus firstPartStatus = WorkStatus.FLUSHED;

    SiwSendPath(int depth, Events events) {
        super(depth, events);
    }

    @Override
    void prepared(SendQueue made, VerbsDevice device, boolean asks, int endpointIndex, int endpointGeneration) {
        staging.prepared(made, true, false, false, endpointIndex, endpointGeneration);
    }

    @Override
    boolean isCompletionDue() {
        return ring.count() > staging.staged();
    }

    @Override
    boolean isInline(WorkRequest work, EndpointCapabilities can) {
        long bytes = work.buffers().totalBytes();
        return super.isInline(work, can) || (bytes <= Siw.SHORT_BYTES && bytes <= can.maxInlineBytes());
    }

    @Override
    boolean post(WorkRequest work, EndpointCapabilities can) {
        if (!ShortReads.isOne(work)) {
            return super.post(work, can);
        }
        if (!flush()) {
            return false;
        }
        SendSlot slot = ring.slot(ring.next());
        slot.hold(work.buffers());
        try {
            ShortReads.stage(
                    staging.queue(),
                    work,
                    staging.id(WorkRequestId.FIRST_PART, ring.next()),
                    staging.id(WorkRequestId.SEND, ring.next()));
        } catch (RuntimeException refused) {
            slot.release();
            throw refused;
        }
        slot.set(work);
        ring.take();
        // Elsewhere each slot stages one work request. A refusal has been reported, and the slot comes back.
        flush();
        return true;
    }

    @Override
    void onDone(int slot) {
        onFailed(slot, WorkStatus.SUCCESS);
    }

    @Override
    void onFailed(int slot, WorkStatus status) {
        ring.slot(slot).outcome = status;
        while (ring.count() > 0 && ring.slot(ring.head()).outcome != null) {
            complete(WorkStatus.FLUSHED);
        }
    }

    @Override
    void onFirstPartFailed(int slot, WorkStatus status) {
        if (status != WorkStatus.FLUSHED) {
            failedFirstPart = slot;
            firstPartStatus = status;
        }
    }

    /** With its own outcome, if that is known. */
    @Override
    void complete(WorkStatus otherwise) {
        SendSlot head = ring.slot(ring.head());
        WorkStatus known = head.outcome;
        head.outcome = null;
        if (ring.head() == failedFirstPart) {
            super.complete(firstPartStatus);
        } else {
            super.complete(known == null ? otherwise : known);
        }
    }
}
