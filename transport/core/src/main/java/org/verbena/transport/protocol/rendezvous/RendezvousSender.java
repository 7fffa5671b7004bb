package org.verbena.transport.protocol.rendezvous;

import io.netty.buffer.ByteBuf;
import java.util.ArrayDeque;
import java.util.Set;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.sending.FrameSender;
import org.verbena.transport.protocol.sending.Obstacle;
import org.verbena.transport.protocol.sending.Operation;
import org.verbena.transport.protocol.sending.SendLedger;
import org.verbena.transport.protocol.sending.SendMemory;
import org.verbena.transport.protocol.state.ConnectionCounters;
import org.verbena.transport.protocol.state.FlightEvents;
import org.verbena.transport.protocol.state.Peer;
import org.verbena.transport.protocol.wire.Wire;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.ScatterGatherList;

/**
 * Messages that the peer reads out of this side's memory: they are advertised in order, and kept until the peer reports
 * that it has read them.
 */
public final class RendezvousSender {
    private static final Set<MemoryDomain.Access> REMOTE_READ = Set.of(MemoryDomain.Access.REMOTE_READ);

    private final Peer peer;
    private final MessageOptions options;
    private final SendLedger ledger;
    private final SendMemory memory;
    private final FrameSender frames;
    private final ConnectionCounters counters;
    private final ArrayDeque<Operation> advertised = new ArrayDeque<>(0);
    /** What is to be advertised; made for the first one, as most connections have none. */
    private @Nullable ScatterGatherList found;

    private int thresholdBytes;
    private int maxOut;
    private int doneByPeer;
    private int begun;

    public RendezvousSender(
            Peer peer,
            MessageOptions options,
            SendLedger ledger,
            SendMemory memory,
            FrameSender frames,
            ConnectionCounters counters) {
        this.peer = peer;
        this.options = options;
        this.ledger = ledger;
        this.memory = memory;
        this.frames = frames;
        this.counters = counters;
    }

    /** Both ends know each other: messages over the threshold are advertised, at most so many at once. */
    public void agree(int threshold, int most) {
        thresholdBytes = threshold;
        maxOut = most;
    }

    /** Whether a message that has not begun to go is to be advertised. */
    public boolean wants(Operation operation) {
        return maxOut > 0 && operation.remainingBytes == operation.totalBytes && operation.totalBytes > thresholdBytes;
    }

    /** Whether as many are under way as may be. */
    public boolean isFull() {
        return begun - doneByPeer >= maxOut;
    }

    /**
     * Finds the pieces to advertise; false if there are too many, or the message is in memory that the peer may not
     * read and that cannot be registered for it.
     */
    public boolean gather(Operation operation, int lengthBytes, int peerPayloadBytes) {
        ScatterGatherList pieces = pieces().clear();
        int total = operation.totalBytes;
        RegisteredMemory registration = operation.registration;
        if (registration == null) {
            int maxSges = Math.min(Wire.MAX_PIECES, peerPayloadBytes / Wire.PIECE_BYTES);
            int covered = memory.gatherPooled(operation, lengthBytes, maxSges, pieces);
            if (covered == lengthBytes && mayAllBeRead(pieces)) {
                return true;
            }
            pieces.clear();
            // A key that opens only this message, and nothing else of the pool's memory.
            if (covered == lengthBytes || total > options.registerThresholdBytes()) {
                if (!SendMemory.messageOf(operation).hasMemoryAddress()) {
                    return memory.registerPieces(operation, lengthBytes, maxSges, REMOTE_READ, pieces);
                }
                registration = memory.register(operation, REMOTE_READ);
            }
        }
        if (registration == null || !registration.access().contains(MemoryDomain.Access.REMOTE_READ)) {
            return false;
        }
        pieces.add(registration, total - operation.remainingBytes, lengthBytes);
        return true;
    }

    private ScatterGatherList pieces() {
        ScatterGatherList pieces = found;
        if (pieces == null) {
            pieces = new ScatterGatherList(Wire.MAX_PIECES);
            found = pieces;
        }
        return pieces;
    }

    private static boolean mayAllBeRead(ScatterGatherList pieces) {
        for (int i = 0; i < pieces.count(); i++) {
            if (!pieces.region(i).access().contains(MemoryDomain.Access.REMOTE_READ)) {
                return false;
            }
        }
        return true;
    }

    /** Advertises what {@link #gather} has found. */
    public Obstacle post(Endpoint endpoint, Operation operation, int lengthBytes) {
        ScatterGatherList pieces = pieces();
        int count = pieces.count();
        int bytes = count * Wire.PIECE_BYTES;
        ByteBuf target = ledger.slots();
        int offset = ledger.slotOffset() + Wire.HEADER_BYTES;
        ledger.request().asSend(ledger.nextId(), ledger.inlineFlag(Wire.HEADER_BYTES + bytes));
        if (Wire.HEADER_BYTES + bytes <= SendLedger.SLOT_BYTES) {
            ledger.gatherSlot(Wire.HEADER_BYTES + bytes);
        } else {
            ledger.gatherSlot(Wire.HEADER_BYTES);
            ByteBuf copy = ledger.stage(endpoint, bytes);
            if (copy == null) {
                return Obstacle.MEMORY;
            }
            target = copy;
            offset = 0;
        }
        for (int i = 0; i < count; i++) {
            target.setLong(offset, pieces.address(i));
            target.setInt(offset + 8, pieces.region(i).remoteKey());
            target.setInt(offset + 12, pieces.length(i));
            offset += Wire.PIECE_BYTES;
        }
        pieces.clear();
        frames.writeMessageHeader(
                Wire.RENDEZVOUS, lengthBytes, lengthBytes < operation.remainingBytes || operation.next != null);
        if (!frames.postMessage(endpoint, operation)) {
            return Obstacle.SLOT;
        }
        operation.advertisedOut++;
        operation.pieceRegistrationsTold = operation.pieceRegistrations.size();
        begun++;
        counters.rendezvousSent();
        operation.rendezvousEvent = FlightEvents.advertised(operation.rendezvousEvent, operation.totalBytes, count);
        advertised.add(operation);
        operation.framePosted(lengthBytes, false);
        return Obstacle.NONE;
    }

    /**
     * The peer reports how many it has read in all.
     *
     * @param completed given each operation that has one less to wait for
     * @return the violation, or null
     */
    public @Nullable String readByPeer(int done, Consumer<Operation> completed) {
        int news = done - doneByPeer;
        if (news == 0) {
            return null;
        }
        if (news < 0 || news > begun - doneByPeer) {
            return "it says that " + Integer.toUnsignedString(done) + " messages were read, and "
                    + Integer.toUnsignedString(begun) + " were advertised";
        }
        doneByPeer = done;
        for (int i = 0; i < news; i++) {
            Operation operation = advertised.poll();
            if (operation != null) {
                operation.advertisedOut--;
                if (operation.advertisedOut == 0 && operation.posted) {
                    FlightEvents.endRendezvous(operation.rendezvousEvent, peer);
                    operation.rendezvousEvent = null;
                }
                completed.accept(operation);
            }
        }
        return null;
    }

    /** The connection has ended: the peer reports nothing more. */
    public void clear() {
        advertised.clear();
    }
}
