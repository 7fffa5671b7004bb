package org.verbena.transport.protocol;

import io.netty.util.ReferenceCounted;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointCapabilities;
import org.verbena.transport.spi.MemoryDomain;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.WorkRequest;

/** Reads, writes and atomics on the peer's memory. */
final class OneSided {
    private final Outbox outbox;
    private final SendLedger ledger;
    private final Credits credits;
    private final Handshake handshake;
    private final boolean raw;

    @SuppressWarnings("NullAway.Init") // set by prepare
    private EndpointCapabilities capabilities;

    OneSided(Outbox outbox, SendLedger ledger, Credits credits, Handshake handshake, boolean raw) {
        this.outbox = outbox;
        this.ledger = ledger;
        this.credits = credits;
        this.handshake = handshake;
        this.raw = raw;
    }

    /** What the endpoint can do is known. */
    void prepare(EndpointCapabilities endpointCapabilities) {
        capabilities = endpointCapabilities;
    }

    Operation newOperation(
            Operation.Kind kind,
            long remoteAddress,
            int remoteKey,
            int immediateData,
            long compareOrAdd,
            long swap,
            ScatterGatherList local,
            @Nullable ReferenceCounted hold,
            OperationCallback callback,
            @Nullable Object context) {
        Operation operation = outbox.newOperation(kind, callback, context);
        operation.hold = hold;
        operation.remoteAddress = remoteAddress;
        operation.remoteKey = remoteKey;
        operation.immediateData = immediateData;
        operation.compareOrAdd = compareOrAdd;
        operation.swap = swap;
        try {
            operation.setPieces(local);
        } catch (IllegalStateException e) {
            operation.failure = e;
        }
        return operation;
    }

    /** Refuses memory that reads may not fill. */
    void checkSinks(ScatterGatherList local, @Nullable ReferenceCounted hold, boolean connected) {
        for (int i = 0; i < local.count(); i++) {
            Set<MemoryDomain.Access> access = local.region(i).access();
            if (!access.contains(MemoryDomain.Access.LOCAL_WRITE)) {
                throw refused("memory that is read into must be registered with LOCAL_WRITE", hold);
            }
            if (connected
                    && capabilities.readSinkNeedsRemoteWrite()
                    && !access.contains(MemoryDomain.Access.REMOTE_WRITE)) {
                throw refused("this adapter reads only into memory that is registered with REMOTE_WRITE as well", hold);
            }
        }
    }

    /** Refuses writes with immediate data that the devices do not have. */
    void checkImmediate(@Nullable ReferenceCounted hold) {
        if (!handshake.haveFeature(Wire.FEATURE_IMMEDIATE)) {
            throw missing("writes with immediate data", hold);
        }
    }

    /** Refuses an atomic that the devices do not have or do not take. */
    void checkAtomic(
            long remoteAddress,
            ScatterGatherList local,
            @Nullable ReferenceCounted hold,
            boolean connected,
            boolean active) {
        if (active && !handshake.haveFeature(Wire.FEATURE_ATOMICS)) {
            throw missing("atomics", hold);
        }
        if ((remoteAddress & 7) != 0) {
            throw refused(
                    "an atomic's address must be a multiple of 8, not 0x" + Long.toHexString(remoteAddress), hold);
        }
        if (local.count() != 1 || local.length(0) != Long.BYTES) {
            throw refused("an atomic needs one local piece of 8 bytes for the old value", hold);
        }
        checkSinks(local, hold, connected);
    }

    private static IllegalArgumentException refused(String message, @Nullable ReferenceCounted hold) {
        if (hold != null) {
            hold.release();
        }
        return new IllegalArgumentException(message);
    }

    private static UnsupportedOperationException missing(String what, @Nullable ReferenceCounted hold) {
        if (hold != null) {
            hold.release();
        }
        return new UnsupportedOperationException("this end's or the peer's device has no " + what);
    }

    /** Posts the next work request of an operation; says why not. */
    Obstacle post(Endpoint endpoint, Operation operation) {
        WorkRequest request = ledger.request();
        boolean reads = operation.kind.reads();
        if (reads && ledger.readsOut() >= capabilities.readDepth()) {
            if (capabilities.readDepth() == 0) {
                throw new UnsupportedOperationException(
                        "this connection was made with a read depth of 0: ask for more to read or to do atomics");
            }
            return Obstacle.SLOT;
        }
        int most = operation.kind == Operation.Kind.READ ? capabilities.maxReadSges() : capabilities.maxSges();
        int count = Math.min(most, operation.pieces - operation.nextPiece);
        boolean last = operation.nextPiece + count == operation.pieces;
        int bytes = 0;
        for (int i = 0; i < count; i++) {
            bytes += operation.lengths[operation.nextPiece + i];
        }
        switch (operation.kind) {
            case READ -> request.asRead(ledger.nextId(), 0, operation.remoteAddress, operation.remoteKey);
            case WRITE_WITH_IMMEDIATE -> {
                if (!handshake.haveFeature(Wire.FEATURE_IMMEDIATE)) {
                    throw missing("writes with immediate data", null);
                }
                if (last) {
                    if (!raw && credits.available() <= 0) {
                        return Obstacle.CREDIT;
                    }
                    request.asWriteWithImmediate(
                            ledger.nextId(),
                            ledger.inlineFlag(bytes),
                            operation.remoteAddress,
                            operation.remoteKey,
                            operation.immediateData);
                } else {
                    request.asWrite(
                            ledger.nextId(), ledger.inlineFlag(bytes), operation.remoteAddress, operation.remoteKey);
                }
            }
            case COMPARE_AND_SWAP, FETCH_AND_ADD -> {
                if (!handshake.haveFeature(Wire.FEATURE_ATOMICS)) {
                    throw missing("atomics", null);
                }
                if (operation.kind == Operation.Kind.COMPARE_AND_SWAP) {
                    request.asCompareAndSwap(
                            ledger.nextId(),
                            0,
                            operation.remoteAddress,
                            operation.remoteKey,
                            operation.compareOrAdd,
                            operation.swap);
                } else {
                    request.asFetchAndAdd(
                            ledger.nextId(), 0, operation.remoteAddress, operation.remoteKey, operation.compareOrAdd);
                }
            }
            default ->
                request.asWrite(
                        ledger.nextId(), ledger.inlineFlag(bytes), operation.remoteAddress, operation.remoteKey);
        }
        for (int i = operation.nextPiece; i < operation.nextPiece + count; i++) {
            // The operation holds them until it has its outcome.
            request.buffers().addHeld(operation.regions[i], operation.offsets[i], operation.lengths[i]);
        }
        if (!ledger.post(endpoint, operation, null)) {
            return Obstacle.SLOT;
        }
        if (reads) {
            ledger.countRead(1);
        } else if (last && operation.kind == Operation.Kind.WRITE_WITH_IMMEDIATE && !raw) {
            credits.messageFrameSent();
        }
        operation.outstanding++;
        operation.nextPiece += count;
        operation.remoteAddress += bytes;
        operation.posted = last;
        return Obstacle.NONE;
    }
}
