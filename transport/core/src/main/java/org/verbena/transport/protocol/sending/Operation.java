package org.verbena.transport.protocol.sending;

import io.netty.buffer.ByteBuf;
import io.netty.util.ReferenceCounted;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.protocol.OperationCallback;
import org.verbena.transport.protocol.state.FlightEvents;
import org.verbena.transport.protocol.state.Work;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.WorkRequest;

/** One user operation, from submission to its callback. Recycled by its connection. */
public final class Operation implements Work {
    public enum Kind {
        MESSAGE,
        READ,
        WRITE,
        WRITE_WITH_IMMEDIATE,
        COMPARE_AND_SWAP,
        FETCH_AND_ADD;

        public boolean reads() {
            return this == READ || this == COMPARE_AND_SWAP || this == FETCH_AND_ADD;
        }
    }

    private static final RegisteredMemory[] NO_REGIONS = {};
    private static final long[] NO_ADDRESSES = {};
    private static final int[] NO_LENGTHS = {};

    public Kind kind = Kind.MESSAGE;

    @Nullable OperationCallback callback;

    @Nullable Object context;

    /** Work requests out. */
    public int outstanding;
    /** Nothing more of it is to be posted. */
    public boolean posted;
    /** One of its work requests failed: the connection is ending, and its cause will be this operation's. */
    boolean failed;
    /** Its outcome is known, though those of earlier messages may have to be reported first. */
    boolean done;

    public @Nullable Throwable failure;

    // Messages.
    public @Nullable ByteBuf message;

    public int index;
    public int totalBytes;
    public int remainingBytes;

    public @Nullable RegisteredMemory registration;

    boolean registrationTried;
    /** Registrations of the pieces of a message that is in several. */
    public List<RegisteredMemory> pieceRegistrations = List.of();
    /** How many of them the peer knows. */
    public int pieceRegistrationsTold;
    /** Stretches that are advertised and that the peer has not read yet. */
    public int advertisedOut;
    /** The rest of it goes by rendezvous. */
    public boolean rendezvous;
    /** With RAW framing: how it is sent. Its immediate data and its key are those below. */
    public WorkRequest.Opcode sendOpcode = WorkRequest.Opcode.SEND;
    /** With RAW framing: a mask of {@link WorkRequest#FENCE} and {@link WorkRequest#SOLICITED}. */
    public int sendFlags;
    /** It is the end of the stream and has no bytes. */
    public boolean end;
    /** Nobody waits for it: it is done when it is posted, if it is copied then. */
    public boolean isUnawaited;

    public FlightEvents.@Nullable Rendezvous rendezvousEvent;

    // A frame of claims: messages that were written where they are sent from.
    /** How many it has; 0 for any other operation. */
    public int claimed;
    /** How many bytes of messages it takes; -1 once it takes no more. */
    public int claimRoomBytes;
    /** Another claim is open in its memory. */
    public boolean isClaimOpen;

    // One-sided operations.
    public @Nullable ReferenceCounted hold;

    public long remoteAddress;
    public int remoteKey;
    public int immediateData;
    public long compareOrAdd;
    public long swap;
    public RegisteredMemory[] regions = NO_REGIONS;
    public long[] offsets = NO_ADDRESSES;
    public int[] lengths = NO_LENGTHS;
    public int pieces;
    public int nextPiece;

    /** The next one waiting to be posted, or free, or failed. */
    public @Nullable Operation next;
    /** The next message, in the order given. */
    @Nullable Operation nextMessage;

    /**
     * The next one that waits to be posted, if it is the next message: not if a message between them has failed
     * already, or if something else comes first.
     */
    public @Nullable Operation nextInOrder() {
        return next == nextMessage ? next : null;
    }

    @Override
    public boolean reads() {
        return kind.reads();
    }

    @Override
    public boolean fetches() {
        return false;
    }

    public void setPieces(ScatterGatherList list) {
        int count = list.count();
        if (regions.length < count) {
            regions = new RegisteredMemory[count];
            offsets = new long[count];
            lengths = new int[count];
        }
        for (int i = 0; i < count; i++) {
            RegisteredMemory region = list.region(i);
            region.retain();
            regions[i] = region;
            offsets[i] = list.address(i) - region.address();
            lengths[i] = list.length(i);
            pieces = i + 1;
        }
    }

    /**
     * A frame with so many bytes of the message was posted.
     *
     * @param isDone whether the message need not wait for its completion
     */
    public void framePosted(int payloadBytes, boolean isDone) {
        outstanding += isDone ? 0 : 1;
        index += payloadBytes;
        remainingBytes -= payloadBytes;
        posted = remainingBytes == 0;
    }

    /** Releases all memory. */
    @SuppressWarnings("NullAway") // an unused element is never read
    void releaseMemory() {
        for (int i = 0; i < pieces; i++) {
            regions[i].release();
            regions[i] = null;
        }
        pieces = 0;
        if (registration != null) {
            registration.close();
            registration = null;
        }
        if (!pieceRegistrations.isEmpty()) {
            pieceRegistrations.forEach(RegisteredMemory::close);
            pieceRegistrations = List.of();
        }
        if (message != null) {
            if (isClaimOpen) {
                isClaimOpen = false; // the claim owns the memory from now on
            } else {
                message.release();
            }
            message = null;
        }
        if (hold != null) {
            hold.release();
            hold = null;
        }
    }

    void reset() {
        callback = null;
        context = null;
        outstanding = 0;
        posted = false;
        failed = false;
        done = false;
        failure = null;
        registrationTried = false;
        pieceRegistrationsTold = 0;
        advertisedOut = 0;
        rendezvous = false;
        sendOpcode = WorkRequest.Opcode.SEND;
        sendFlags = 0;
        end = false;
        isUnawaited = false;
        rendezvousEvent = null;
        claimed = 0;
        nextPiece = 0;
        next = null;
        nextMessage = null;
    }

    /** What failed, in words for an exception. */
    public String describe() {
        return switch (kind) {
            case MESSAGE ->
                end
                        ? "the end of the stream"
                        : claimed > 0
                                ? claimed + " claimed messages of " + totalBytes + " bytes"
                                : "message of " + totalBytes + " bytes";
            default ->
                kind + " at 0x" + Long.toHexString(remoteAddress) + " with key 0x" + Integer.toHexString(remoteKey);
        };
    }
}
