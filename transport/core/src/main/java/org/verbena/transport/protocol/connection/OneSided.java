package org.verbena.transport.protocol.connection;

import io.netty.util.ReferenceCounted;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.EndpointCapabilities;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.protocol.OperationCallback;
import org.verbena.transport.protocol.handshake.Handshake;
import org.verbena.transport.protocol.sending.Obstacle;
import org.verbena.transport.protocol.sending.Operation;
import org.verbena.transport.protocol.sending.Outbox;
import org.verbena.transport.protocol.sending.SendLedger;
import org.verbena.transport.protocol.sending.Transfers;
import org.verbena.transport.protocol.state.Lifecycle;
import org.verbena.transport.protocol.wire.Credits;
import org.verbena.transport.protocol.wire.Wire;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.WorkRequest;

/**
 * Reads, writes and atomics on the peer's memory, in the order given and in order with messages: {@link
 * MessageConnection#oneSided()}. They go to the device at {@link MessageConnection#flush()} at the latest. Each
 * callback is called exactly once. On the connection's loop only.
 */
public final class OneSided {
    private final Lifecycle life;
    private final Outbox outbox;
    private final SendLedger ledger;
    private final Credits credits;
    private final Handshake handshake;
    private final Transfers transfers;
    private final boolean raw;
    private final Runnable onRefused;

    @SuppressWarnings("NullAway.Init") // set by prepare
    private EndpointCapabilities capabilities;

    /** There was an operation: most connections have none, and ask for no turns. */
    private boolean isUsed;

    /**
     * Creates the one-sided operations of one connection.
     *
     * @param onRefused run when an operation has its outcome at once
     */
    OneSided(
            Lifecycle life,
            Outbox outbox,
            SendLedger ledger,
            Credits credits,
            Handshake handshake,
            Transfers transfers,
            boolean raw,
            Runnable onRefused) {
        this.life = life;
        this.onRefused = onRefused;
        this.outbox = outbox;
        this.ledger = ledger;
        this.credits = credits;
        this.handshake = handshake;
        this.transfers = transfers;
        this.raw = raw;
    }

    /** What the endpoint can do is known. */
    void prepare(EndpointCapabilities endpointCapabilities) {
        capabilities = endpointCapabilities;
    }

    /**
     * Queues a read of the peer's memory. A read into more elements than a work request can have is split into several.
     *
     * @param remoteAddress the address in the peer's memory
     * @param remoteKey the peer's key for it
     * @param local the memory to read into; the list is read during the call only, and the regions are held until the
     *     outcome
     * @param hold released with the outcome, for example the buffer that contains the memory; null for nothing. Taken
     *     even if this method throws
     * @param callback called with the outcome
     * @param context passed to the callback
     * @throws IllegalArgumentException a region without LOCAL_WRITE, or without REMOTE_WRITE where the adapter asks for
     *     it
     */
    public void read(
            long remoteAddress,
            int remoteKey,
            ScatterGatherList local,
            @Nullable ReferenceCounted hold,
            OperationCallback callback,
            @Nullable Object context) {
        checkSinks(local, hold);
        submit(newOperation(Operation.Kind.READ, remoteAddress, remoteKey, local, hold, callback, context));
    }

    /**
     * Queues a write into the peer's memory. Success does not mean that the peer's program can see the data: a message
     * sent after it does.
     *
     * @param remoteAddress the address in the peer's memory
     * @param remoteKey the peer's key for it
     * @param local the memory to write from; the list is read during the call only, and the regions are held until the
     *     outcome
     * @param hold released with the outcome; null for nothing. Taken even if this method throws
     * @param callback called with the outcome
     * @param context passed to the callback
     */
    public void write(
            long remoteAddress,
            int remoteKey,
            ScatterGatherList local,
            @Nullable ReferenceCounted hold,
            OperationCallback callback,
            @Nullable Object context) {
        submit(newOperation(Operation.Kind.WRITE, remoteAddress, remoteKey, local, hold, callback, context));
    }

    /**
     * Queues a write that notifies the peer with 32 bits, in order with messages. Takes a credit like a message.
     *
     * @param remoteAddress the address in the peer's memory
     * @param remoteKey the peer's key for it
     * @param immediateData for the peer's {@code onImmediate}
     * @param local the memory to write from; the list is read during the call only, and the regions are held until the
     *     outcome
     * @param hold released with the outcome; null for nothing. Taken even if this method throws
     * @param callback called with the outcome
     * @param context passed to the callback
     * @throws UnsupportedOperationException the device or the peer has no immediate data
     */
    public void writeWithImmediate(
            long remoteAddress,
            int remoteKey,
            int immediateData,
            ScatterGatherList local,
            @Nullable ReferenceCounted hold,
            OperationCallback callback,
            @Nullable Object context) {
        if (life.isAgreed() && !handshake.haveFeature(Wire.FEATURE_IMMEDIATE)) {
            throw missing("writes with immediate data", hold);
        }
        Operation operation = newOperation(
                Operation.Kind.WRITE_WITH_IMMEDIATE, remoteAddress, remoteKey, local, hold, callback, context);
        operation.immediateData = immediateData;
        submit(operation);
    }

    /**
     * Queues an atomic compare-and-swap of 8 bytes.
     *
     * @param remoteAddress the address in the peer's memory; a multiple of 8
     * @param remoteKey the peer's key for it
     * @param expected swap only if the old value equals this
     * @param value the new value
     * @param local one element of 8 bytes for the old value, in host order; read during the call only
     * @param hold released with the outcome; null for nothing. Taken even if this method throws
     * @param callback called with the outcome
     * @param context passed to the callback
     * @throws UnsupportedOperationException the device or the peer has no atomics
     */
    public void compareAndSwap(
            long remoteAddress,
            int remoteKey,
            long expected,
            long value,
            ScatterGatherList local,
            @Nullable ReferenceCounted hold,
            OperationCallback callback,
            @Nullable Object context) {
        checkAtomic(remoteAddress, local, hold);
        Operation operation =
                newOperation(Operation.Kind.COMPARE_AND_SWAP, remoteAddress, remoteKey, local, hold, callback, context);
        operation.compareOrAdd = expected;
        operation.swap = value;
        submit(operation);
    }

    /**
     * Queues an atomic add to 8 bytes.
     *
     * @param remoteAddress the address in the peer's memory; a multiple of 8
     * @param remoteKey the peer's key for it
     * @param add the value to add; overflow wraps
     * @param local one element of 8 bytes for the old value, in host order; read during the call only
     * @param hold released with the outcome; null for nothing. Taken even if this method throws
     * @param callback called with the outcome
     * @param context passed to the callback
     * @throws UnsupportedOperationException the device or the peer has no atomics
     */
    public void fetchAndAdd(
            long remoteAddress,
            int remoteKey,
            long add,
            ScatterGatherList local,
            @Nullable ReferenceCounted hold,
            OperationCallback callback,
            @Nullable Object context) {
        checkAtomic(remoteAddress, local, hold);
        Operation operation =
                newOperation(Operation.Kind.FETCH_AND_ADD, remoteAddress, remoteKey, local, hold, callback, context);
        operation.compareOrAdd = add;
        submit(operation);
    }

    private void submit(Operation operation) {
        isUsed = true;
        if (!outbox.submit(operation)) {
            onRefused.run();
        }
    }

    private Operation newOperation(
            Operation.Kind kind,
            long remoteAddress,
            int remoteKey,
            ScatterGatherList local,
            @Nullable ReferenceCounted hold,
            OperationCallback callback,
            @Nullable Object context) {
        Operation operation = outbox.newOperation(kind, callback, context);
        operation.hold = hold;
        operation.remoteAddress = remoteAddress;
        operation.remoteKey = remoteKey;
        try {
            operation.setPieces(local);
        } catch (IllegalStateException e) {
            operation.failure = e;
        }
        return operation;
    }

    /** Refuses memory that reads may not fill. */
    private void checkSinks(ScatterGatherList local, @Nullable ReferenceCounted hold) {
        for (int i = 0; i < local.count(); i++) {
            Set<MemoryDomain.Access> access = local.region(i).access();
            if (!access.contains(MemoryDomain.Access.LOCAL_WRITE)) {
                throw refused("memory that is read into must be registered with LOCAL_WRITE", hold);
            }
            if (life.isUp()
                    && capabilities.readSinkNeedsRemoteWrite()
                    && !access.contains(MemoryDomain.Access.REMOTE_WRITE)) {
                throw refused("this adapter reads only into memory that is registered with REMOTE_WRITE as well", hold);
            }
        }
    }

    /** Refuses an atomic that the devices do not have or do not take. */
    private void checkAtomic(long remoteAddress, ScatterGatherList local, @Nullable ReferenceCounted hold) {
        if (life.isAgreed() && !handshake.haveFeature(Wire.FEATURE_ATOMICS)) {
            throw missing("atomics", hold);
        }
        if ((remoteAddress & 7) != 0) {
            throw refused(
                    "an atomic's address must be a multiple of 8, not 0x" + Long.toHexString(remoteAddress), hold);
        }
        if (local.count() != 1 || local.length(0) != Long.BYTES) {
            throw refused("an atomic needs one local element of 8 bytes for the old value", hold);
        }
        checkSinks(local, hold);
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

    /** Waiting operations are posted now, as far as possible. */
    void beginPosting() {
        if (isUsed) {
            transfers.operations().beginAsking();
        }
    }

    /** Waiting operations were posted, as far as possible. */
    void endPosting() {
        if (isUsed) {
            transfers.operations().endAsking();
        }
    }

    /** Posts the next work request of an operation; says why not. */
    Obstacle post(Endpoint endpoint, Operation operation) {
        WorkRequest request = ledger.request();
        boolean reads = operation.kind.reads();
        if (reads && ledger.readsOut() >= capabilities.readDepth()) {
            if (capabilities.readDepth() == 0) {
                throw new UnsupportedOperationException(
                        "this connection has a read depth of 0: ask for 1 or more to use reads and atomics");
            }
            return Obstacle.SLOT;
        }
        int most = operation.kind == Operation.Kind.READ ? capabilities.maxReadSges() : capabilities.maxSges();
        int count = Math.min(most, operation.pieces - operation.nextPiece);
        boolean last = operation.nextPiece + count == operation.pieces;
        long bytes = 0;
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
        if (!transfers.tryBegin(transfers.operations(), bytes)) {
            return Obstacle.BUDGET;
        }
        if (!ledger.postTransfer(endpoint, operation, bytes)) {
            return Obstacle.SLOT;
        }
        if (last && operation.kind == Operation.Kind.WRITE_WITH_IMMEDIATE && !raw) {
            credits.frameSent();
            credits.messageFrameSent();
        }
        operation.outstanding++;
        operation.nextPiece += count;
        operation.remoteAddress += bytes;
        operation.posted = last;
        return Obstacle.NONE;
    }
}
