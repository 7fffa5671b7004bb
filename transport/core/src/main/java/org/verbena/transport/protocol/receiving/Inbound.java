package org.verbena.transport.protocol.receiving;

import io.netty.buffer.ByteBuf;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.protocol.state.FlightEvents;
import org.verbena.transport.protocol.state.Work;
import org.verbena.transport.protocol.wire.Wire;

/**
 * Something that arrived and cannot be delivered yet: it is incomplete, or the user does not read. Recycled by its
 * connection.
 */
public final class Inbound implements Work {
    private static final long[] NO_ADDRESSES = {};
    private static final int[] NO_NUMBERS = {};

    /** Complete: may be delivered when it is the first. */
    public boolean ready;
    /** Receives that are posted again when it is delivered. */
    public int receives;
    /** The message is the receive buffer that it came in. */
    boolean inReceive;
    /** The peer's end of the stream. */
    boolean end;

    public @Nullable ByteBuf message;

    Notice notice = Notice.NONE;
    /** The immediate data, or the key. */
    int noticeWord;

    int noticeLengthBytes;

    /** When its first part arrived. */
    long arrivedNanos;

    // Fragments: how much is still to come, and what waits in receives for memory.
    int remainingBytes;
    int parkedFragments;

    // Several messages in one receive, which is the message here: how many are left, and where their lengths are.
    int packedLeft;
    int packedLengthIndex;
    /** The receive counts as the user's: a slice of it was delivered. */
    boolean packedHeld;

    // Rendezvous.
    public boolean rendezvous;
    public int totalBytes;
    public long[] addresses = NO_ADDRESSES;
    public int[] keys = NO_NUMBERS;
    public int[] lengths = NO_NUMBERS;
    public int pieces;
    public int nextPiece;
    public int pieceOffset;
    public int requestedBytes;
    public int readsOut;

    public FlightEvents.@Nullable Rendezvous rendezvousEvent;

    public @Nullable RegisteredMemory registration;

    @Nullable Inbound next;

    public @Nullable Inbound nextRendezvous;

    /** It is fetched, and has room for its pieces from now on. */
    public void beginRendezvous() {
        rendezvous = true;
        if (addresses.length == 0) {
            addresses = new long[Wire.MAX_PIECES];
            keys = new int[Wire.MAX_PIECES];
            lengths = new int[Wire.MAX_PIECES];
        }
    }

    /** Whether all fragments of a message have come. */
    boolean hasCome() {
        return !rendezvous && totalBytes > 0 && remainingBytes == 0;
    }

    @Override
    public boolean reads() {
        return true;
    }

    @Override
    public boolean fetches() {
        return true;
    }

    public void closeRegistration() {
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
        packedLeft = 0;
        packedLengthIndex = 0;
        packedHeld = false;
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
