package org.verbena.transport.protocol;

import io.netty.buffer.ByteBuf;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.RegisteredMemory;

/**
 * Something that arrived and cannot be delivered yet: it is incomplete, or the user does not read. Recycled by its
 * connection.
 */
final class Inbound implements Work {
    /** Complete: may be delivered when it is the first. */
    boolean ready;
    /** Receives that are posted again when it is delivered. */
    int receives;
    /** The message is the receive buffer that it came in. */
    boolean inReceive;
    /** The peer's end of the stream. */
    boolean end;

    @Nullable ByteBuf message;

    Notice notice = Notice.NONE;
    /** The immediate data, or the key. */
    int noticeWord;

    int noticeLengthBytes;

    /** When the first of it came. */
    long arrivedNanos;

    // Fragments: how much is still to come, and what waits in receives for memory.
    int remainingBytes;
    int parkedFragments;

    // Rendezvous.
    boolean rendezvous;
    int totalBytes;
    final long[] addresses = new long[Wire.MAX_PIECES];
    final int[] keys = new int[Wire.MAX_PIECES];
    final int[] lengths = new int[Wire.MAX_PIECES];
    int pieces;
    int nextPiece;
    int pieceOffset;
    int requestedBytes;
    int readsOut;

    FlightEvents.@Nullable Rendezvous rendezvousEvent;

    @Nullable RegisteredMemory registration;

    @Nullable Inbound next;

    @Nullable Inbound nextRendezvous;

    /** Whether all fragments of a message have come. */
    boolean hasCome() {
        return !rendezvous && totalBytes > 0 && remainingBytes == 0;
    }

    void closeRegistration() {
        if (registration != null) {
            registration.close();
            registration = null;
        }
    }

    void releaseMemory() {
        closeRegistration();
        if (message != null) {
            message.release();
            message = null;
        }
    }

    void reset() {
        ready = false;
        receives = 0;
        end = false;
        inReceive = false;
        totalBytes = 0;
        remainingBytes = 0;
        parkedFragments = 0;
        message = null;
        notice = Notice.NONE;
        rendezvous = false;
        rendezvousEvent = null;
        pieces = 0;
        nextPiece = 0;
        pieceOffset = 0;
        requestedBytes = 0;
        readsOut = 0;
        next = null;
        nextRendezvous = null;
    }
}
