package org.verbena.transport.software;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointHandler;

/**
 * Reports the results of an endpoint's work to its handler, in the order of each queue. An exception of the handler
 * ends the connection. Not thread-safe; confined to the loop's thread.
 */
public final class CompletionReports {
    private final Owner owner;
    private final Endpoint endpoint;
    private final EndpointHandler handler;
    private final SendRing sends;
    private final WorkRing receives;

    /** Something was reported since the last end of a batch. */
    private boolean isInBatch;

    /** The endpoint that work is reported for. */
    public interface Owner {
        /** Whether work is still being done. */
        boolean isConnected();

        /** Whether the oldest request of the send queue is done. */
        boolean isHeadDone();

        /** The message that is being placed, if any ever was. */
        @Nullable Placement receiveInProgress();

        /** Why the connection has ended, and what failed by itself. */
        ConnectionOutcome outcome();

        /** Something was reported. */
        void countCompletion();

        /** The handler threw. */
        void fail(Throwable cause);
    }

    public <E extends Endpoint & Owner> CompletionReports(
            E endpoint, EndpointHandler handler, SendRing sends, WorkRing receives) {
        this.owner = endpoint;
        this.endpoint = endpoint;
        this.handler = handler;
        this.sends = sends;
        this.receives = receives;
    }

    /**
     * Reports the requests at the head of the send queue that are done, as long as the connection is up. What is posted
     * meanwhile may be done at once, and is reported later.
     */
    public void reportSends() {
        long end = sends.tail();
        while (sends.head() < end && owner.isConnected() && owner.isHeadDone()) {
            completeHead(WorkStatus.SUCCESS);
        }
    }

    private void completeHead(WorkStatus status) {
        int slot = sends.slot(sends.head());
        long workId = sends.workId(slot);
        int bytes = status == WorkStatus.SUCCESS ? sends.totalBytes(slot) : 0;
        sends.removeHead();
        completed();
        try {
            handler.onSendCompletion(endpoint, workId, status, bytes);
        } catch (Throwable t) {
            owner.fail(t);
        }
    }

    private void completed() {
        isInBatch = true;
        owner.countCompletion();
    }

    /**
     * Offers a message where it lies; returns false if it goes into a receive. A handler that throws has ended the
     * connection, and gets it no more.
     */
    public boolean offerMessage(MemorySegment memory, long offsetBytes, int lengthBytes) {
        boolean taken = true;
        try {
            taken = handler.onMessage(endpoint, memory, offsetBytes, lengthBytes);
        } catch (Throwable t) {
            owner.fail(t);
        }
        if (taken) {
            completed();
        }
        return taken;
    }

    /** A message has been placed. */
    public void reportReceive(Placement receive, WorkStatus status, int bytes, int flags, int word) {
        long workId = receive.workId();
        receive.end();
        reportReceive(workId, status, bytes, flags, word);
    }

    private void reportReceive(long workId, WorkStatus status, int bytes, int flags, int word) {
        completed();
        try {
            handler.onReceiveCompletion(endpoint, workId, status, bytes, flags, word);
        } catch (Throwable t) {
            owner.fail(t);
        }
    }

    /** Reports everything still outstanding: the connection has ended. */
    public void reportRest() {
        ConnectionOutcome outcome = owner.outcome();
        while (owner.isHeadDone() && !outcome.isFailed(sends.head())) {
            completeHead(WorkStatus.SUCCESS);
        }
        while (!sends.isEmpty()) {
            completeHead(outcome.status(sends.head()));
        }
        Placement inProgress = owner.receiveInProgress();
        if (inProgress != null && inProgress.isActive()) {
            reportReceive(inProgress, outcome.receiveStatus(), 0, 0, 0);
        }
        while (!receives.isEmpty()) {
            long workId = receives.workId(receives.slot(receives.head()));
            receives.removeHead();
            reportReceive(workId, WorkStatus.FLUSHED, 0, 0, 0);
        }
    }

    /** What was copied without a work request has gone: the handler is called at the end of the batch. */
    public void copiesSent() {
        isInBatch = true;
    }

    /** Nothing more is reported for now. */
    public void endBatch() {
        if (isInBatch) {
            isInBatch = false;
            try {
                handler.onCompletionsHandled(endpoint);
            } catch (Throwable t) {
                owner.fail(t);
            }
        }
    }
}
