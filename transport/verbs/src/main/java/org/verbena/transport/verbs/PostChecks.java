package org.verbena.transport.verbs;

import java.util.EnumSet;
import java.util.Set;
import org.verbena.transport.EndpointCapabilities;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.WorkRequest;

/**
 * Validates a work request once, where it enters the provider. The bounds of its elements were checked when they were
 * added to its list. Allocates nothing unless it is invalid.
 */
final class PostChecks {
    private PostChecks() {}

    /** Where an SGE begins in its region. */
    static long offset(ScatterGatherList list, int index) {
        return list.address(index) - list.region(index).address();
    }

    /**
     * Checks a receive.
     *
     * @throws IllegalArgumentException too many SGEs, or one that may not be written or is not of the domain
     */
    static void receive(ScatterGatherList buffers, int maxSges, VerbsMemoryDomain domain) {
        count(buffers, maxSges, "receive");
        for (int i = 0; i < buffers.count(); i++) {
            domain.checkOwn(buffers.region(i));
            requireWritable(buffers.region(i), "receive");
        }
    }

    /** The operations that exist here. */
    static Set<WorkRequest.Opcode> operations(EndpointCapabilities capabilities) {
        Set<WorkRequest.Opcode> found = EnumSet.noneOf(WorkRequest.Opcode.class);
        for (WorkRequest.Opcode opcode : WorkRequest.Opcode.values()) {
            boolean exists = switch (opcode) {
                case SEND, WRITE, READ -> true;
                case SEND_WITH_IMMEDIATE, WRITE_WITH_IMMEDIATE -> capabilities.immediateData();
                case SEND_WITH_INVALIDATE -> capabilities.sendWithInvalidate();
                case COMPARE_AND_SWAP, FETCH_AND_ADD -> capabilities.atomics();
            };
            if (exists) {
                found.add(opcode);
            }
        }
        return found;
    }

    /**
     * Checks that an operation exists here.
     *
     * @param opcode the operation
     * @param operations those that exist
     * @throws UnsupportedOperationException it does not
     */
    static void operation(WorkRequest.Opcode opcode, Set<WorkRequest.Opcode> operations) {
        if (!operations.contains(opcode)) {
            throw new UnsupportedOperationException("this connection has no " + opcode
                    + ": check capabilities() first; the device or its transport does not support it");
        }
    }

    /**
     * Checks a send, write, read or atomic.
     *
     * @throws IllegalArgumentException against the limits, without a right, or with memory that is not of the domain
     */
    static void request(WorkRequest request, EndpointCapabilities capabilities, VerbsMemoryDomain domain) {
        ScatterGatherList buffers = request.buffers();
        boolean inline = (request.flags() & WorkRequest.INLINE) != 0;
        switch (request.opcode()) {
            case SEND, SEND_WITH_IMMEDIATE, SEND_WITH_INVALIDATE, WRITE, WRITE_WITH_IMMEDIATE -> {
                count(buffers, capabilities.maxSges(), "send or write");
                if (inline && buffers.totalBytes() > capabilities.maxInlineBytes()) {
                    throw new IllegalArgumentException(buffers.totalBytes() + " bytes are more than the "
                            + capabilities.maxInlineBytes()
                            + " that this connection sends inline: ask for more with maxInlineBytes,"
                            + " or send without INLINE");
                }
                for (int i = 0; i < buffers.count(); i++) {
                    domain.checkOwn(buffers.region(i));
                }
            }
            case READ -> {
                refuseInline(inline);
                count(buffers, capabilities.maxReadSges(), "read");
                for (int i = 0; i < buffers.count(); i++) {
                    domain.checkOwn(buffers.region(i));
                    sink(buffers.region(i), capabilities, "read");
                }
            }
            case COMPARE_AND_SWAP, FETCH_AND_ADD -> {
                refuseInline(inline);
                if (buffers.count() != 1 || buffers.totalBytes() != Long.BYTES) {
                    throw new IllegalArgumentException("an atomic needs one element of 8 bytes for the old value, not "
                            + buffers.count() + " of " + buffers.totalBytes() + " bytes");
                }
                if ((request.remoteAddress() & Long.BYTES - 1) != 0) {
                    throw new IllegalArgumentException("the remote address 0x"
                            + Long.toHexString(request.remoteAddress()) + " of an atomic is not a multiple of 8");
                }
                domain.checkOwn(buffers.region(0));
                sink(buffers.region(0), capabilities, "atomic");
            }
        }
        if (buffers.totalBytes() > capabilities.maxMessageBytes()) {
            throw new IllegalArgumentException(buffers.totalBytes() + " bytes are more than the "
                    + capabilities.maxMessageBytes() + " that one work request can move here");
        }
    }

    private static void count(ScatterGatherList buffers, int max, String what) {
        if (buffers.count() > max) {
            throw new IllegalArgumentException(
                    "a " + what + " has at most " + max + " elements here, not " + buffers.count());
        }
    }

    private static void refuseInline(boolean inline) {
        if (inline) {
            throw new IllegalArgumentException("reads and atomics cannot be INLINE: their data comes from the peer");
        }
    }

    private static void sink(RegisteredMemory region, EndpointCapabilities capabilities, String what) {
        requireWritable(region, what);
        if (capabilities.readSinkNeedsRemoteWrite() && !region.access().contains(Access.REMOTE_WRITE)) {
            throw lacks(region, Access.REMOTE_WRITE, what);
        }
    }

    private static void requireWritable(RegisteredMemory region, String what) {
        if (!region.access().contains(Access.LOCAL_WRITE)
                && !region.access().contains(Access.REMOTE_WRITE)
                && !region.access().contains(Access.REMOTE_ATOMIC)) {
            throw lacks(region, Access.LOCAL_WRITE, what);
        }
    }

    private static IllegalArgumentException lacks(RegisteredMemory region, Access right, String what) {
        return new IllegalArgumentException(
                "the memory of a " + what + " must be registered with " + right + ", this one has " + region.access());
    }
}
