package org.verbena.transport.protocol.rendezvous;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.EndpointCapabilities;
import org.verbena.transport.Framing;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.RdmaException;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.buffer.OperationRegistration;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.memory.MessageBuffers;
import org.verbena.transport.protocol.receiving.Inbound;
import org.verbena.transport.protocol.receiving.Inbox;
import org.verbena.transport.protocol.sending.SendLedger;
import org.verbena.transport.protocol.sending.Transfers;
import org.verbena.transport.protocol.state.ConnectionCounters;
import org.verbena.transport.protocol.state.FlightEvents;
import org.verbena.transport.protocol.state.Peer;
import org.verbena.transport.protocol.wire.Credits;
import org.verbena.transport.protocol.wire.HeaderState;
import org.verbena.transport.protocol.wire.Wire;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.WorkRequest;

/**
 * Messages that the peer advertised, and that are read out of its memory: in order, several reads at once, within half
 * of the read depth.
 */
public final class RendezvousReceiver {
    /** One read's length: long enough for full speed, short enough that other work gets its turn. */
    public static final int READ_CHUNK_BYTES = 1 << 20;

    private static final Set<MemoryDomain.Access> LOCAL = Set.of(MemoryDomain.Access.LOCAL_WRITE);

    private static final Set<MemoryDomain.Access> LOCAL_AND_REMOTE =
            Set.of(MemoryDomain.Access.LOCAL_WRITE, MemoryDomain.Access.REMOTE_WRITE);

    private final MessageOptions options;
    private final Inbox inbox;
    private final SendLedger ledger;
    private final ConnectionCounters counters;
    private final HeaderState header;
    private final Peer peer;
    private final Runnable retry;
    private final Transfers transfers;

    // Set by prepare.
    @SuppressWarnings("NullAway.Init")
    private EndpointCapabilities capabilities;

    @SuppressWarnings("NullAway.Init")
    private MessageBuffers buffers;

    private @Nullable Inbound head;
    private @Nullable Inbound tail;
    private int begun;
    private int readsOut;
    private long takenBytes;

    /**
     * Creates one.
     *
     * @param retry makes the connection try again in a while, when nothing reports that there is memory
     */
    public RendezvousReceiver(
            Peer peer,
            MessageOptions options,
            Inbox inbox,
            SendLedger ledger,
            ConnectionCounters counters,
            HeaderState header,
            Runnable retry,
            Transfers transfers) {
        this.peer = peer;
        this.options = options;
        this.inbox = inbox;
        this.ledger = ledger;
        this.counters = counters;
        this.header = header;
        this.retry = retry;
        this.transfers = transfers;
    }

    public void prepare(EndpointCapabilities endpointCapabilities, MessageBuffers memory) {
        capabilities = endpointCapabilities;
        buffers = memory;
    }

    /** Messages that have been read, in all. */
    public int done() {
        return header.rendezvousTotal();
    }

    /** Whether reads wait for the peer's answer. */
    public boolean isReading() {
        return readsOut > 0;
    }

    /** Whether a message of the peer waits for this end: for its user, memory or a turn. */
    public boolean isHeldUp() {
        return begun != done() && readsOut == 0;
    }

    /** What was read in all, each read that is done counting as a long one. */
    public long takenBytes() {
        return takenBytes;
    }

    /** The connection has ended: nothing more is read. */
    public void clear() {
        head = null;
        tail = null;
    }

    /** The peer advertises a message; returns the violation, or null. */
    public @Nullable String advertised(ByteBuf buffer, int payload, int length, boolean closing) {
        int count = payload / Wire.PIECE_BYTES;
        if (begun - done() >= options.maxRendezvous()) {
            return "it advertised more messages than it may";
        }
        if (length == 0 || count < 1 || count > Wire.MAX_PIECES || payload != count * Wire.PIECE_BYTES) {
            return "it advertised " + length + " bytes in " + payload + " bytes of pieces";
        }
        Inbound inbound = inbox.newInbound();
        inbound.beginRendezvous();
        inbound.totalBytes = length;
        inbound.pieces = count;
        inbound.receives = closing ? 0 : 1;
        long sum = 0;
        int offset = Wire.HEADER_BYTES;
        for (int i = 0; i < count; i++) {
            inbound.addresses[i] = buffer.getLong(offset);
            inbound.keys[i] = buffer.getInt(offset + 8);
            inbound.lengths[i] = buffer.getInt(offset + 12);
            if (inbound.lengths[i] < 1) {
                sum = -1;
                break;
            }
            sum += inbound.lengths[i];
            offset += Wire.PIECE_BYTES;
        }
        if (sum != length) {
            inbox.recycle(inbound);
            return "it advertised " + length + " bytes in pieces of another sum";
        }
        inbound.rendezvousEvent = FlightEvents.beginRendezvous(false, length, count);
        begun++;
        inbox.advertised(inbound);
        if (tail == null) {
            head = inbound;
        } else {
            tail.nextRendezvous = inbound;
        }
        tail = inbound;
        return null;
    }

    /** Reads advertised messages, in order, as far as the read depth, slots, memory and the loop's budget allow. */
    public void post(Endpoint endpoint, boolean closing) {
        transfers.messages().beginAsking();
        try {
            postReads(endpoint, closing);
        } finally {
            transfers.messages().endAsking();
        }
    }

    private void postReads(Endpoint endpoint, boolean closing) {
        while (head != null) {
            Inbound inbound = head;
            if (inbound.message == null && !((inbox.isReading() || closing) && takeMemory(endpoint, inbound))) {
                return;
            }
            while (inbound.requestedBytes < inbound.totalBytes) {
                if (!postRead(endpoint, inbound)) {
                    return;
                }
            }
            head = inbound.nextRendezvous;
            inbound.nextRendezvous = null;
            if (head == null) {
                tail = null;
            }
        }
    }

    private boolean takeMemory(Endpoint endpoint, Inbound inbound) {
        if (options.framing() == Framing.STREAM) {
            inbound.message = inbox.tryAllocateStretch(inbound.totalBytes);
            if (inbound.message == null) {
                inbound.message = registeredSink(endpoint, inbound);
            }
            if (inbound.message == null) {
                retry.run();
            }
        } else {
            inbox.tryAllocateMessage(inbound);
        }
        ByteBuf message = inbound.message;
        if (message == null) {
            return false;
        }
        if (!registerSink(endpoint, inbound, message)) {
            inbox.giveMemoryBack(inbound);
            retry.run();
            return false;
        }
        return true;
    }

    private boolean postRead(Endpoint endpoint, Inbound inbound) {
        ByteBuf message = inbound.message;
        if (message == null
                || readsOut >= Math.max(1, capabilities.readDepth() / 2)
                || ledger.readsOut() >= capabilities.readDepth()
                || ledger.free(endpoint) <= Credits.CONTROL_RECEIVES) {
            return false;
        }
        int piece = inbound.nextPiece;
        int length = Math.min(READ_CHUNK_BYTES, inbound.lengths[piece] - inbound.pieceOffset);
        if (!transfers.tryBegin(transfers.messages(), length)) {
            return false;
        }
        WorkRequest request = ledger.request();
        request.asRead(ledger.nextId(), 0, inbound.addresses[piece] + inbound.pieceOffset, inbound.keys[piece]);
        RegisteredMemory sink = inbound.registration;
        if (sink != null) {
            request.buffers().add(sink, inbound.requestedBytes, length);
        } else if (buffers.gather(message, inbound.requestedBytes, length, 1, request.buffers()) != length) {
            throw new IllegalStateException(
                    "a receive buffer is not one piece of memory registered with this device: " + message);
        }
        if (!ledger.postTransfer(endpoint, inbound, length)) {
            return false;
        }
        readsOut++;
        inbound.readsOut++;
        inbound.requestedBytes += length;
        inbound.pieceOffset += length;
        if (inbound.pieceOffset == inbound.lengths[piece]) {
            inbound.nextPiece++;
            inbound.pieceOffset = 0;
        }
        return true;
    }

    /** The rights that memory to read into is registered with: no more than the adapter needs. */
    private Set<MemoryDomain.Access> sinkAccess() {
        return capabilities.readSinkNeedsRemoteWrite() ? LOCAL_AND_REMOTE : LOCAL;
    }

    /**
     * Memory outside the pool, for a stream whose user holds all that it may of the pool's and may be waiting for these
     * bytes; null if there is none now, or it cannot be registered.
     */
    private @Nullable ByteBuf registeredSink(Endpoint endpoint, Inbound inbound) {
        ByteBuf memory;
        try {
            memory = ByteBufAllocator.DEFAULT.directBuffer(inbound.totalBytes);
        } catch (OutOfMemoryError noDirectMemory) {
            return null; // of the JVM: try again later
        }
        try {
            inbound.registration = OperationRegistration.register(
                    memory, 0, inbound.totalBytes, endpoint.connectionMemory(), sinkAccess());
        } catch (RdmaException e) {
            // The limit of locked memory may be reached: try again later.
            inbound.registration = null;
        }
        if (inbound.registration == null) {
            memory.release();
            return null;
        }
        counters.registered();
        return memory;
    }

    /**
     * Registers the message's own bytes for the read if they are not in the pool's memory, or if the adapter needs more
     * rights than that has.
     *
     * @return false if the device refuses that now
     */
    private boolean registerSink(Endpoint endpoint, Inbound inbound, ByteBuf message) {
        if (inbound.registration != null) {
            return true;
        }
        ScatterGatherList pieces = ledger.request().buffers().clear();
        if (buffers.gather(message, 0, inbound.totalBytes, 1, pieces) == inbound.totalBytes
                && (!capabilities.readSinkNeedsRemoteWrite()
                        || pieces.region(0).access().contains(MemoryDomain.Access.REMOTE_WRITE))) {
            return true;
        }
        try {
            inbound.registration = OperationRegistration.register(
                    message, 0, inbound.totalBytes, endpoint.connectionMemory(), sinkAccess());
        } catch (RdmaException e) {
            // The limit of locked memory may be reached: try again later.
            inbound.registration = null;
        }
        if (inbound.registration == null) {
            return false;
        }
        counters.registered();
        return true;
    }

    /** A read is done; returns whether its message is. */
    public boolean completed(Inbound inbound, WorkStatus status) {
        readsOut--;
        takenBytes += READ_CHUNK_BYTES;
        inbound.readsOut--;
        ByteBuf message = inbound.message;
        if (status != WorkStatus.SUCCESS
                || inbound.readsOut > 0
                || inbound.requestedBytes < inbound.totalBytes
                || message == null) {
            return false;
        }
        message.setIndex(0, inbound.totalBytes);
        inbound.closeRegistration();
        inbound.ready = true;
        header.rendezvousDone();
        counters.rendezvousReceived();
        FlightEvents.endRendezvous(inbound.rendezvousEvent, peer);
        inbound.rendezvousEvent = null;
        return true;
    }
}
