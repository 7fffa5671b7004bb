package org.verbena.grpc.internal.nativetransport;

import java.util.ArrayDeque;

/**
 * A call on a connection: its number, its credit in both directions, and what waits for credit. Event loop only.
 */
final class StreamFlow {

    /** The call above. */
    interface Owner {
        /** So many of the bytes that were handed over have been sent. Both kinds of gRPC's calls have it. */
        void onSentBytes(int bytes);

        /** TRAILERS have been sent: the call is over. */
        void trailersSent();

        /** The connection has ended, or the peer refused the call. */
        void lost(LostCall why);
    }

    final Owner owner;

    /** What waits for credit, for its turn, or for the channel. */
    final ArrayDeque<Outgoing> pending = new ArrayDeque<>(2);

    /** 0 until the call has begun. */
    int id;

    /** How many bytes the peer takes. */
    long credit;

    /** How many bytes the peer may send. */
    int window;

    /** How many bytes gRPC has taken since the last WINDOW. */
    int consumed;

    /** How many bytes have been received and not been taken. */
    int unconsumed;

    /** What was charged for these beyond their bytes, because they came in short DATA. */
    int surcharge;

    /** Whether the stream waits for the connection's credit or the channel. */
    boolean queued;

    /** Whether the stream has left the connection. */
    boolean removed;

    /** The peer's half has ended. */
    boolean inboundEnded;

    /** HEADERS of the peer have been received. */
    boolean headersReceived;

    /** This end's TRAILERS have been sent, and the owner does not know it yet. */
    boolean trailersUnreported;

    /** Whether the stream has something to report. */
    boolean reporting;

    /** Bytes that were sent and not yet reported to the owner. */
    int sentUnreported;

    StreamFlow(Owner owner) {
        this.owner = owner;
    }

    /** Whether the first that waits could be sent as far as the call's own credit goes. */
    boolean maySend() {
        Outgoing next = pending.peek();
        return next != null && (credit > 0 || next.remainingBytes() == 0);
    }

    void releasePending() {
        Outgoing next = pending.poll();
        while (next != null) {
            next.release();
            next = pending.poll();
        }
    }
}
