package org.verbena.transport.protocol.connection;

import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.AuthenticationException;
import org.verbena.transport.ProtocolException;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.protocol.sending.Operation;
import org.verbena.transport.protocol.state.FlightEvents;
import org.verbena.transport.protocol.state.Lifecycle.Phase;
import org.verbena.transport.spi.Endpoint;

/** The end of a connection: when to disconnect, and what becomes of everything that is pending then. */
final class Ending {
    private final Parts parts;
    private final boolean raw;
    private final Consumer<Throwable> onThrown;
    private int failedOperations;
    private boolean lingers;

    Ending(Parts parts, boolean raw, Consumer<Throwable> onThrown) {
        this.parts = parts;
        this.raw = raw;
        this.onThrown = onThrown;
    }

    /** Disconnects if both ends have sent all that they had, and it is this end's turn. */
    void finishClose(Endpoint endpoint) {
        if (!parts.life.isUp() || !parts.ledger.isEmpty()) {
            return;
        }
        // The end that sent CLOSE first disconnects; the other waits for that, so that nothing it has sent is lost.
        // Where nothing would report that, it disconnects as well: its sends are done, so the peer's queue pair has
        // them.
        boolean isDone = raw
                ? parts.life.isCloseRequested() && parts.outbox.unfinished() == 0
                : parts.life.is(Phase.CLOSED)
                        && (!parts.life.hasAnswered()
                                || !endpoint.capabilities().reportsPeerEnd());
        if (isDone) {
            endpoint.disconnect();
        }
    }

    /**
     * The endpoint is gone: everything that was to be sent fails, and what can be delivered is left.
     *
     * @param cause as the endpoint reports it
     * @return why the connection has ended; null if in good order
     */
    @Nullable Throwable disconnected(Endpoint endpoint, @Nullable Throwable cause) {
        parts.peer.setEndpoint(endpoint);
        Throwable why = parts.life.ending(parts.peer, cause, !raw, parts.handshake.isAuthenticating());
        lingers = why == null && !parts.life.isCloseRequested() && !parts.life.is(Phase.ABORTED);
        try {
            releaseEndpointMemory();
        } catch (RuntimeException e) {
            // The device did not release memory: everything pending gets its outcome nevertheless.
            onThrown.accept(e);
        }
        parts.inbox.dropIncomplete();
        parts.rendezvous.clear();
        parts.rendezvousSender.clear();
        parts.life.keepCause(why);
        parts.life.disconnected();
        parts.outflow.end();
        failedOperations = parts.outbox.unfinished();
        parts.outbox.failAll(why);
        parts.endClaims();
        parts.outbox.updateWritable(false);
        return why;
    }

    /** Why a peer is disconnected that sent what it must not. */
    Throwable violation(String what) {
        return parts.handshake.hasRefused()
                ? refused(what)
                : new ProtocolException(parts.peer + " violated the message protocol and was disconnected: " + what
                        + ". Both ends must run the same protocol; see docs/protocol.md");
    }

    /** Why a peer without the right key is disconnected. */
    AuthenticationException refused(String why) {
        return new AuthenticationException(
                parts.peer + " was disconnected: " + why + ". Both ends need the same pre-shared key, id and secret");
    }

    /** Whether the user may still read what has arrived. */
    boolean lingers() {
        return lingers;
    }

    private void releaseEndpointMemory() {
        if (parts.peer.isPrepared()) {
            parts.window.release();
        }
        while (!parts.ledger.isEmpty()) {
            // The provider should have reported these completions; their memory is released nevertheless.
            if (parts.ledger.take() instanceof Operation first) {
                parts.outbox.completed(first, parts.ledger.takenMessages(), WorkStatus.FLUSHED);
            }
        }
        parts.ledger.release();
        parts.transfers.leave();
    }

    /** Nothing is left to be read; the end is reported when the connection settles. */
    void inactive(@Nullable Throwable cause) {
        if (parts.life.is(Phase.INACTIVE)) {
            return;
        }
        parts.life.inactive();
        parts.handshake.release();
        parts.outbox.updateWritable(false);
        parts.inbox.clear();
        parts.counters.over();
        if (parts.handshake.negotiated() == null) {
            parts.handshake.failed(cause);
        } else {
            FlightEvents.disconnected(parts.peer, parts.counters, cause, failedOperations);
        }
        parts.settling.end(cause);
    }
}
