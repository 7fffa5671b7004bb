package org.verbena.transport.protocol.state;

import org.jspecify.annotations.Nullable;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.WorkCompletionException;
import org.verbena.transport.WorkStatus;

/**
 * The phase of a connection's life, and the first cause of its end.
 *
 * <pre>{@code
 * phase        connected  agreed   close()      CLOSE sent  CLOSE came   abort()   disconnected
 * CONNECTING   HANDSHAKE  ACTIVE*  ABORTED                               ABORTED   INACTIVE
 * HANDSHAKE               ACTIVE   ABORTED                               ABORTED   INACTIVE
 * ACTIVE                           CLOSING                  PEER_CLOSED  ABORTED   LINGERING or INACTIVE
 * CLOSING                                       CLOSE_SENT  PEER_CLOSED  ABORTED   INACTIVE
 * CLOSE_SENT                                                CLOSED       ABORTED   INACTIVE
 * PEER_CLOSED                      (requested)  CLOSED                   ABORTED   LINGERING or INACTIVE
 * CLOSED                           (requested)                           ABORTED   LINGERING or INACTIVE
 * ABORTED                                                                          INACTIVE
 * LINGERING                        INACTIVE                              INACTIVE
 * }</pre>
 *
 * <p>* with framing RAW, where there is nothing to agree on. LINGERING ends when all messages have been read; there are
 * some only if this end has not closed.
 */
public final class Lifecycle {
    /** The phases, in the order in which they come. */
    public enum Phase {
        /** No connection yet. */
        CONNECTING,
        /** Connected; HELLO or its answer is awaited. */
        HANDSHAKE,
        /** Both ends agreed. */
        ACTIVE,
        /** The user has closed; what was queued before is still being sent. */
        CLOSING,
        /** This end has sent CLOSE and waits for the peer's. */
        CLOSE_SENT,
        /** The peer has sent CLOSE, which is still to be answered. */
        PEER_CLOSED,
        /** Both have sent CLOSE. */
        CLOSED,
        /** Ended at once; the device still has work. */
        ABORTED,
        /** Disconnected, with messages that the user has not read yet. */
        LINGERING,
        /** Ended. */
        INACTIVE
    }

    private Phase phase = Phase.CONNECTING;
    private boolean closeRequested;
    private boolean answered;
    private @Nullable Throwable firstCause;

    public Phase phase() {
        return phase;
    }

    public boolean is(Phase one) {
        return phase == one;
    }

    /** Connected, and neither aborted nor disconnected. */
    public boolean isUp() {
        return phase.compareTo(Phase.HANDSHAKE) >= 0 && phase.compareTo(Phase.CLOSED) <= 0;
    }

    /** Up, and both ends agreed, whether or not they are closing. */
    public boolean isAgreed() {
        return phase.compareTo(Phase.ACTIVE) >= 0 && phase.compareTo(Phase.CLOSED) <= 0;
    }

    /** Whether no more operations are accepted. */
    public boolean isClosing() {
        return phase.compareTo(Phase.ACTIVE) > 0;
    }

    /** The user has closed this end: inbound messages are dropped. */
    public boolean isCloseRequested() {
        return closeRequested;
    }

    public boolean isCloseSent() {
        return phase == Phase.CLOSE_SENT || phase == Phase.CLOSED;
    }

    public boolean hasPeerClosed() {
        return phase == Phase.PEER_CLOSED || phase == Phase.CLOSED;
    }

    /** Both have sent CLOSE, this end in answer: the peer disconnects. */
    public boolean hasAnswered() {
        return phase == Phase.CLOSED && answered;
    }

    public boolean isDisconnected() {
        return phase.compareTo(Phase.LINGERING) >= 0;
    }

    public @Nullable Throwable firstCause() {
        return firstCause;
    }

    /** Sets the cause, if none was known before. */
    public void keepCause(@Nullable Throwable cause) {
        if (firstCause == null) {
            firstCause = cause;
        }
    }

    /** A work request has failed, and was not just flushed. */
    public void workFailed(Peer peer, String what, WorkStatus status) {
        if (phase == Phase.CLOSED) {
            return;
        }
        FlightEvents.completionError(peer, what, status);
        if (phase != Phase.ABORTED) {
            keepCause(new WorkCompletionException(what + " with " + peer, status, 0));
        }
    }

    /**
     * The endpoint has ended. Returns why the connection ended, or null if it was closed in good order.
     *
     * @param cause as the endpoint reports it
     * @param orderly whether peers send CLOSE before they disconnect
     * @param authenticating whether they prove a key before
     */
    public @Nullable Throwable ending(Peer peer, @Nullable Throwable cause, boolean orderly, boolean authenticating) {
        if (firstCause instanceof WorkCompletionException && isExplanation(cause)) {
            firstCause = cause; // what was known is only a consequence of this
        }
        if (firstCause != null) {
            return firstCause;
        }
        if (phase == Phase.ABORTED || phase == Phase.CLOSED || (isCloseSent() && cause == null)) {
            return null;
        }
        if (phase == Phase.HANDSHAKE && authenticating) {
            String why = peer + " disconnected during the handshake: does it have the pre-shared key"
                    + " of this end, with the same secret? Only its log says which is wrong";
            return cause == null ? new ConnectionException.Lost(why) : new ConnectionException.Lost(why, cause);
        }
        if (cause != null || !orderly) {
            return cause;
        }
        return new ConnectionException.Lost(peer
                + (isAgreed()
                        ? " disconnected without sending CLOSE: its program ended or was killed, or a device went down"
                        : " disconnected during the handshake"));
    }

    /** Whether the endpoint explains why a work request failed: by an event that its device reported. */
    private static boolean isExplanation(@Nullable Throwable cause) {
        return cause instanceof ConnectionException && cause.getCause() instanceof WorkCompletionException;
    }

    public void connected() {
        phase = Phase.HANDSHAKE;
    }

    public void agreed() {
        phase = Phase.ACTIVE;
    }

    public void requestClose() {
        closeRequested = true;
        if (phase == Phase.ACTIVE) {
            phase = Phase.CLOSING;
        }
    }

    public void closeSent() {
        answered = phase == Phase.PEER_CLOSED;
        phase = answered ? Phase.CLOSED : Phase.CLOSE_SENT;
    }

    public void peerClosed() {
        phase = phase == Phase.CLOSE_SENT ? Phase.CLOSED : Phase.PEER_CLOSED;
    }

    public void abort(@Nullable Throwable cause) {
        if (phase != Phase.ABORTED) {
            phase = Phase.ABORTED;
            keepCause(cause);
        }
    }

    /** Disconnected; what was delivered to this end may still be read. */
    public void disconnected() {
        phase = Phase.LINGERING;
    }

    public void inactive() {
        phase = Phase.INACTIVE;
    }

    @Override
    public String toString() {
        return phase + (closeRequested ? " closing" : "") + (answered ? " answered" : "");
    }
}
