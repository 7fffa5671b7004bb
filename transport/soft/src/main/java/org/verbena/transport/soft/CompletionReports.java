package org.verbena.transport.soft;

import org.jspecify.annotations.Nullable;
import org.verbena.transport.software.Placement;
import org.verbena.transport.software.SendRing;
import org.verbena.transport.software.WorkRing;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.WorkStatus;

/**
 * Reports the results of an endpoint's work to its handler, in the order of each queue. An exception of the handler
 * ends the connection. One thread.
 */
final class CompletionReports {
    private final SoftEndpoint endpoint;
    private final EndpointHandler handler;
    private final SendRing sends;
    private final WorkRing receives;

    /** Something was reported since the last end of a batch. */
    private boolean isInBatch;

    CompletionReports(SoftEndpoint endpoint, EndpointHandler handler, SendRing sends, WorkRing receives) {
        this.endpoint = endpoint;
        this.handler = handler;
        this.sends = sends;
        this.receives = receives;
    }

    /**
     * Reports the requests at the head of the send queue that are done, as long as the connection is up. What is posted
     * meanwhile may be done at once, and is reported another time.
     */
    void reportSends(FpduSender out) {
        long end = sends.tail();
        while (sends.head() < end && endpoint.isConnected() && out.isHeadDone()) {
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
            endpoint.fail(t);
        }
    }

    private void completed() {
        isInBatch = true;
        endpoint.countCompletion();
    }

    /** A message has been placed. */
    void reportReceive(Placement receive, WorkStatus status, int bytes, int flags, int word) {
        long workId = receive.workId();
        receive.end();
        reportReceive(workId, status, bytes, flags, word);
    }

    private void reportReceive(long workId, WorkStatus status, int bytes, int flags, int word) {
        completed();
        try {
            handler.onReceiveCompletion(endpoint, workId, status, bytes, flags, word);
        } catch (Throwable t) {
            endpoint.fail(t);
        }
    }

    /** Reports everything still outstanding: the connection has ended. */
    void reportRest(@Nullable FpduStream stream, ConnectionEnd end) {
        if (stream != null) {
            while (stream.out.isHeadDone() && !end.isFailed(sends.head())) {
                completeHead(WorkStatus.SUCCESS);
            }
        }
        while (!sends.isEmpty()) {
            completeHead(end.status(sends.head()));
        }
        if (stream != null && stream.parser.receiveInProgress().isActive()) {
            reportReceive(stream.parser.receiveInProgress(), end.receiveStatus(), 0, 0, 0);
        }
        while (!receives.isEmpty()) {
            long workId = receives.workId(receives.slot(receives.head()));
            receives.removeHead();
            reportReceive(workId, WorkStatus.FLUSHED, 0, 0, 0);
        }
    }

    /** Nothing more is reported for now. */
    void endBatch() {
        if (isInBatch) {
            isInBatch = false;
            try {
                handler.onCompletionsHandled(endpoint);
            } catch (Throwable t) {
                endpoint.fail(t);
            }
        }
    }
}
