package org.verbena.transport.protocol.connection;

import io.netty.buffer.ByteBuf;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.protocol.framing.Framer;
import org.verbena.transport.protocol.framing.RawFramer;
import org.verbena.transport.protocol.sending.Obstacle;
import org.verbena.transport.protocol.sending.Operation;
import org.verbena.transport.protocol.sending.Outbox;
import org.verbena.transport.protocol.sending.SendLedger;
import org.verbena.transport.protocol.sending.SendMemory;
import org.verbena.transport.protocol.state.ConnectionCounters;
import org.verbena.transport.protocol.state.FlightEvents;
import org.verbena.transport.protocol.state.Peer;
import org.verbena.transport.protocol.wire.Credits;
import org.verbena.transport.protocol.wire.HeaderState;
import org.verbena.transport.spi.Endpoint;

/**
 * Posts the operations that wait in the outbox, in order and as far as possible, and knows what the first of them waits
 * for.
 */
final class Outflow {
    private final Outbox outbox;
    private final SendLedger ledger;
    private final Framer framer;
    private final OneSided oneSided;
    private final HeaderState header;
    private final Runnable retry;
    private final ConnectionCounters counters;
    private final Peer peer;
    /** Slots of the send queue that are left to control frames. */
    private final int reserved;

    /** Within {@link #post}, which may call a listener for frames. */
    private boolean posting;

    private Obstacle stall = Obstacle.NONE;
    private long stalledSinceNanos;
    private FlightEvents.@Nullable CreditStall stallEvent;

    /** The retry makes the connection try again in a while, when nothing reports that there is memory. */
    Outflow(
            Outbox outbox,
            SendLedger ledger,
            Framer framer,
            OneSided oneSided,
            HeaderState header,
            Runnable retry,
            ConnectionCounters counters,
            Peer peer) {
        this.outbox = outbox;
        this.ledger = ledger;
        this.framer = framer;
        this.oneSided = oneSided;
        this.header = header;
        this.retry = retry;
        this.counters = counters;
        this.peer = peer;
        reserved = framer instanceof RawFramer ? 0 : Credits.CONTROL_RECEIVES;
    }

    /**
     * Posts what can be posted. If the endpoint refuses an operation, only that one fails. Does nothing within itself.
     *
     * @throws RuntimeException a message was refused after a part of it was sent, or a frame of claims: the connection
     *     cannot continue
     */
    void post(Endpoint endpoint) {
        if (posting) {
            return;
        }
        posting = true;
        oneSided.beginPosting();
        try {
            postWaiting(endpoint);
        } finally {
            oneSided.endPosting();
            posting = false;
        }
    }

    /** Whether it is posting now: what waits must not be changed. */
    boolean isPosting() {
        return posting;
    }

    /**
     * Gives the endpoint what is staged. Messages that it has copied have their outcomes once they have gone. Returns
     * whether some of them have, so that something else may go.
     */
    boolean flush(Endpoint endpoint) {
        if (ledger.takeStaged()) {
            endpoint.flush();
        }
        return outbox.isHeld() && endpoint.hasSentCopies() && outbox.endHold();
    }

    private void postWaiting(Endpoint endpoint) {
        Operation operation = outbox.firstWaiting();
        while (operation != null) {
            Obstacle obstacle;
            try {
                obstacle = tryPost(endpoint, operation);
            } catch (RuntimeException e) {
                // Refused before it reached the device: what was posted of it completes, the rest is not sent.
                ledger.dropStaged();
                operation.failure = e;
                operation.posted = true;
                obstacle = Obstacle.NONE;
                if (operation.kind == Operation.Kind.MESSAGE && framer.hasBegun(operation)) {
                    throw e;
                }
            }
            if (ledger.takeCopied()) {
                outbox.hold(operation);
            }
            if (obstacle != Obstacle.NONE) {
                if (obstacle == Obstacle.MEMORY && !ledger.hasCopiesOut()) {
                    retry.run();
                }
                stallBecomes(obstacle, false);
                return;
            }
            while (operation != null && operation.posted) { // several, if they went in one frame
                outbox.removeFirstWaiting();
                outbox.maybeComplete(operation);
                operation = outbox.firstWaiting();
            }
        }
        stallBecomes(Obstacle.NONE, false);
    }

    private Obstacle tryPost(Endpoint endpoint, Operation operation) {
        if (ledger.free(endpoint) <= reserved) {
            return Obstacle.SLOT;
        }
        if (operation.kind != Operation.Kind.MESSAGE) {
            return oneSided.post(endpoint, operation);
        }
        ByteBuf message = operation.message;
        if (message != null) {
            SendMemory.requireAlive(message);
        }
        return framer.post(endpoint, operation);
    }

    /** The connection has ended: no operation waits any more. */
    void end() {
        stallBecomes(Obstacle.NONE, true);
    }

    private void stallBecomes(Obstacle obstacle, boolean byEnd) {
        if (obstacle == stall) {
            return;
        }
        if (stall == Obstacle.CREDIT) {
            counters.creditStallEnded(System.nanoTime() - stalledSinceNanos);
            FlightEvents.endCreditStall(stallEvent, peer, byEnd);
            stallEvent = null;
            header.goesOn();
        }
        stall = obstacle;
        switch (obstacle) {
            case CREDIT -> {
                header.waits();
                stalledSinceNanos = System.nanoTime();
                counters.creditStallBegan(stalledSinceNanos);
                stallEvent = FlightEvents.beginCreditStall(outbox.queuedBytes());
            }
            case SLOT -> counters.slotStallBegan();
            case MEMORY -> counters.memoryStallBegan();
            case BUDGET, NONE -> {
                // Transfers are counted where they wait, or nothing waits.
            }
        }
    }

    @Override
    public String toString() {
        Operation waiting = outbox.firstWaiting();
        return "queued " + outbox.queuedBytes() + " bytes in " + outbox.unfinished() + " operations"
                + (waiting == null ? "" : ", " + waiting.describe() + " waits for " + stall.inWords());
    }
}
