package org.verbena.transport.protocol.sending;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.CompositeByteBuf;
import io.netty.buffer.UnpooledByteBufAllocator;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.RdmaException;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.buffer.OperationRegistration;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.memory.MessageBuffers;
import org.verbena.transport.protocol.state.ConnectionCounters;
import org.verbena.transport.protocol.wire.Wire;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.ScatterGatherList;

/**
 * Finds the bytes of a message: in the pool, in memory that is registered only for the message, or in memory that has
 * to be copied.
 */
public final class SendMemory {
    private final MessageOptions options;
    private final SendLedger ledger;
    private final ConnectionCounters counters;

    // Set by prepare.
    @SuppressWarnings("NullAway.Init")
    private MessageBuffers buffers;

    @SuppressWarnings("NullAway.Init")
    private MemoryDomain domain;

    public SendMemory(MessageOptions options, SendLedger ledger, ConnectionCounters counters) {
        this.options = options;
        this.ledger = ledger;
        this.counters = counters;
    }

    public void prepare(Endpoint endpoint, MessageBuffers memory) {
        buffers = memory;
        domain = endpoint.connectionMemory();
    }

    public static ByteBuf messageOf(Operation operation) {
        ByteBuf message = operation.message;
        if (message == null) {
            throw new IllegalStateException("a message without memory");
        }
        return message;
    }

    /** Adds registered memory of the pool from the message's index on; returns the bytes covered. */
    public int gatherPooled(Operation operation, int lengthBytes, int maxSges, ScatterGatherList into) {
        return buffers.gather(messageOf(operation), operation.index, lengthBytes, maxSges, into);
    }

    /**
     * Adds registered memory from the message's index on, registering it if that is worth it; returns the bytes
     * covered.
     */
    public int gather(Operation operation, int lengthBytes, int maxSges, ScatterGatherList into) {
        RegisteredMemory registration = operation.registration;
        if (registration == null) {
            int covered = gatherPooled(operation, lengthBytes, maxSges, into);
            boolean begun = operation.remainingBytes < operation.totalBytes;
            if (covered > 0 || begun || operation.totalBytes <= options.registerThresholdBytes()) {
                return covered;
            }
            registration = register(operation, Set.of());
            if (registration == null) {
                return 0;
            }
        }
        into.add(registration, operation.totalBytes - operation.remainingBytes, lengthBytes);
        return lengthBytes;
    }

    /**
     * Registers a message for its operation; null if it is on the heap, in pieces, or the device refuses: then it goes
     * another way.
     */
    public @Nullable RegisteredMemory register(Operation operation, Set<MemoryDomain.Access> access) {
        if (operation.registrationTried) {
            return null;
        }
        operation.registrationTried = true;
        try {
            RegisteredMemory registration = OperationRegistration.register(
                    messageOf(operation),
                    operation.index - (operation.totalBytes - operation.remainingBytes),
                    operation.totalBytes,
                    domain,
                    access);
            operation.registration = registration;
            if (registration != null) {
                counters.registered();
            }
            return registration;
        } catch (RdmaException e) {
            // The limit of locked memory may be reached. Fragments work without registration, and the statistics show
            // them.
            return null;
        }
    }

    /**
     * Registers the pieces of a message's next bytes for its operation, and adds them.
     *
     * @return false if some are on the heap, there are too many, or the device refuses: then it goes another way
     */
    public boolean registerPieces(
            Operation operation,
            int lengthBytes,
            int maxSges,
            Set<MemoryDomain.Access> access,
            ScatterGatherList into) {
        int advertised = operation.pieceRegistrationsTold;
        if (operation.pieceRegistrations.size()
                        == advertised // otherwise these bytes were registered before, and could not go
                && !registerMore(operation, lengthBytes, maxSges, access)) {
            return false;
        }
        List<RegisteredMemory> regions = operation.pieceRegistrations;
        for (int i = advertised; i < regions.size(); i++) {
            RegisteredMemory region = regions.get(i);
            into.add(region, 0, (int) region.lengthBytes());
        }
        return true;
    }

    private boolean registerMore(Operation operation, int lengthBytes, int maxSges, Set<MemoryDomain.Access> access) {
        if (operation.registrationTried) {
            return false;
        }
        List<RegisteredMemory> more = List.of();
        try {
            more = OperationRegistration.registerSges(
                    messageOf(operation), operation.index, lengthBytes, maxSges, domain, access);
        } catch (RdmaException e) {
            // As above.
        }
        if (more.isEmpty()) {
            operation.registrationTried = true;
            return false;
        }
        more.forEach(region -> counters.registered());
        if (operation.pieceRegistrations.isEmpty()) {
            operation.pieceRegistrations = more;
        } else {
            operation.pieceRegistrations.addAll(more);
        }
        return true;
    }

    /**
     * Refuses memory of an arena that is closed. Netty and the kernel are given addresses, and would send what was
     * freed or end the process.
     *
     * @throws IllegalStateException it is closed
     */
    public static void requireAlive(ByteBuf memory) {
        if (memory instanceof CompositeByteBuf composite) {
            for (int i = 0; i < composite.numComponents(); i++) {
                requireAlive(composite.internalComponent(i));
            }
        } else if (memory.isDirect()
                && memory.alloc() instanceof UnpooledByteBufAllocator // only that wraps memory of others
                && !MemorySegment.ofBuffer(memory.nioBuffer(memory.readerIndex(), 0))
                        .scope()
                        .isAlive()) {
            throw new IllegalStateException(
                    "the arena of a message's memory was closed before it was sent: close it when the send is done");
        }
    }

    /** Stages a copy of the message's next bytes; false if there is no memory for it now. */
    public boolean copy(Endpoint endpoint, Operation operation, int lengthBytes) {
        ByteBuf copy = ledger.stage(endpoint, lengthBytes);
        if (copy == null) {
            return false;
        }
        messageOf(operation).getBytes(operation.index, copy, 0, lengthBytes);
        counters.copied(lengthBytes);
        return true;
    }

    /**
     * The endpoint has copied the message's next bytes, as it would any: counts those that had to be copied anyway.
     */
    public void countCopy(Operation operation, int lengthBytes, int maxSges) {
        ByteBuf message = messageOf(operation);
        int pieces = message.hasArray() ? -1 : buffers.pieces(message, operation.index, lengthBytes);
        if (pieces < 0 || pieces > maxSges) {
            counters.copied(lengthBytes);
        }
    }

    /** Copies the message's next bytes behind the header in the work request's slot. */
    public void copyToSlot(Operation operation, int lengthBytes) {
        messageOf(operation)
                .getBytes(operation.index, ledger.slots(), ledger.slotOffset() + Wire.HEADER_BYTES, lengthBytes);
        counters.copied(lengthBytes);
    }

    /** Copies the next bytes of this message and of those behind it, which could go without. */
    public void copySegment(Operation first, ByteBuf target, int offset, int lengthBytes) {
        copyTogether(first, target, offset, lengthBytes);
        counters.copied(lengthBytes);
    }

    /** Copies the next bytes of this message and of those behind it, wherever they are: they share a frame. */
    public void copyTogether(Operation first, ByteBuf target, int offset, int lengthBytes) {
        int copied = 0;
        for (Operation next = first; next != null && copied < lengthBytes; next = next.next) {
            int part = Math.min(next.remainingBytes, lengthBytes - copied);
            if (part > 0) {
                messageOf(next).getBytes(next.index, target, offset + copied, part);
                copied += part;
            }
        }
    }
}
