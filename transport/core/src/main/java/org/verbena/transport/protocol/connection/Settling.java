package org.verbena.transport.protocol.connection;

import org.jspecify.annotations.Nullable;

/**
 * Decides when the connection calls out. Every entry point changes the connection's parts first and ends with {@link
 * #settle}: it reports outcomes, posts what can be posted, and reports the end when there is nothing else to report. So
 * a callback may call any method; the loop that is already settling handles its effects, and a nested entry point
 * leaves them to that loop.
 */
final class Settling {
    private final Parts parts;
    private final MessageConnection connection;

    /** Within a batch of completions, at whose end everything settles. */
    private boolean inBatch;
    /** Within an entry point that settles at its end, or settling. */
    private boolean busy;

    private boolean pumpAgain;
    /** The end has to be reported, after all outcomes. */
    private boolean endDue;

    private @Nullable Throwable endCause;
    /** The exception of a callback that still has to be thrown to the caller. */
    private @Nullable Error thrown;

    Settling(Parts parts, MessageConnection connection) {
        this.parts = parts;
        this.connection = connection;
    }

    /** Whether this is within another entry point, or a batch. */
    boolean isWithin() {
        return busy || inBatch;
    }

    void beginBatch() {
        inBatch = true;
    }

    boolean isInBatch() {
        return inBatch;
    }

    void endBatch() {
        inBatch = false;
    }

    /** Nothing settles until {@link #leave} is called with the value that this returns. */
    boolean enter() {
        boolean outer = busy;
        busy = true;
        return outer;
    }

    void leave(boolean outer) {
        busy = outer;
    }

    /** What could not be sent before may be sent now: the pump has to run once more. */
    void pumpAgain() {
        pumpAgain = true;
    }

    /** The first error is thrown to the caller when everything is settled. */
    void keep(Throwable failure) {
        if (thrown == null && failure instanceof Error error) {
            thrown = error;
        }
    }

    /** The connection has ended, which is reported last. */
    void end(@Nullable Throwable cause) {
        endDue = true;
        endCause = cause;
    }

    /**
     * Reports and pumps until nothing is left to do.
     *
     * @param pumping whether something may go that could not before
     */
    void settle(boolean pumping) {
        pumpAgain |= pumping;
        if (busy || inBatch) {
            return;
        }
        busy = true;
        boolean more = true;
        while (more) {
            if (parts.outbox.reportOutcome()) {
                continue;
            }
            if (pumpAgain) {
                pumpAgain = false;
                connection.pump();
            } else if (parts.control.takePong()) {
                parts.callbacks.pong(parts.control.answeredNonce());
            } else if (endDue) {
                endDue = false;
                parts.callbacks.inactive(endCause);
            } else {
                more = parts.timeouts.mayChange() && reportDeadline();
            }
        }
        busy = false;
        Error error = thrown;
        if (error != null) {
            thrown = null;
            throw error;
        }
    }

    /** Reports the next deadline if it is earlier than the one that the listener knows. */
    private boolean reportDeadline() {
        parts.timeouts.update();
        long nextNanos = parts.timeouts.nextNanos();
        boolean nearer = parts.timeouts.takeNearer(nextNanos);
        if (nearer) {
            parts.callbacks.deadline(nextNanos);
        }
        return nearer;
    }

    @Override
    public String toString() {
        return (inBatch ? ", in a batch" : "") + (busy ? ", busy" : "");
    }
}
