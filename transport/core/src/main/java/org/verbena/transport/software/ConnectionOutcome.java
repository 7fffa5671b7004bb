package org.verbena.transport.software;

import org.jspecify.annotations.Nullable;
import org.verbena.transport.WorkStatus;

/**
 * Why a connection ends, and which work request failed by itself rather than with the connection. Not thread-safe;
 * confined to the loop's thread.
 */
public class ConnectionOutcome {
    private @Nullable Throwable cause;
    private long failedSequence = -1;
    private WorkStatus failedStatus = WorkStatus.FLUSHED;
    private boolean receiveFailed;

    /** Null for an orderly end. */
    public final @Nullable Throwable cause() {
        return cause;
    }

    public final void setCause(Throwable why) {
        cause = why;
    }

    /** The receive that a message goes to is too small for it. */
    public final void receiveTooSmall() {
        receiveFailed = true;
    }

    public final boolean hasReceiveFailed() {
        return receiveFailed;
    }

    /** The status of the receive in progress. */
    public final WorkStatus receiveStatus() {
        return receiveFailed ? WorkStatus.LOCAL_LENGTH_ERROR : WorkStatus.FLUSHED;
    }

    /** The peer reported which request of the send queue failed, and how. */
    public final void requestFailed(long sequence, WorkStatus status) {
        failedSequence = sequence;
        failedStatus = status;
    }

    public final boolean isFailed(long sequence) {
        return sequence == failedSequence;
    }

    /** The status of a request of the send queue that is not done. */
    public final WorkStatus status(long sequence) {
        return isFailed(sequence) ? failedStatus : WorkStatus.FLUSHED;
    }
}
