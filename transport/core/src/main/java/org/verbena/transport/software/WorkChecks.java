package org.verbena.transport.software;

import org.verbena.transport.MemoryDomain;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.WorkRequest;

/** Checks whether a work request can be accepted, during the caller's call and before any of it is stored. */
public final class WorkChecks {
    private WorkChecks() {}

    /**
     * Checks a receive's SGEs.
     *
     * @param domain where they must be registered
     * @param maxSges how many there may be
     * @param buffers the SGEs
     */
    public static void checkReceive(SoftwareDomain domain, int maxSges, ScatterGatherList buffers) {
        checkSges(domain, maxSges, buffers, true);
        if (buffers.totalBytes() > Integer.MAX_VALUE) {
            throw new IllegalArgumentException(
                    "a receive of " + buffers.totalBytes() + " bytes is over the limit of " + Integer.MAX_VALUE);
        }
    }

    /**
     * Checks a request's local memory.
     *
     * @param domain where its SGEs must be registered
     * @param maxSges how many there may be
     * @param maxInlineBytes payload of an inline one
     * @param work to be posted
     */
    public static void checkLocal(SoftwareDomain domain, int maxSges, int maxInlineBytes, WorkRequest work) {
        ScatterGatherList buffers = work.buffers();
        WorkRequest.Opcode opcode = work.opcode();
        boolean answered = isAnswered(opcode);
        checkSges(domain, maxSges, buffers, answered);
        if (buffers.totalBytes() > Integer.MAX_VALUE) {
            throw new IllegalArgumentException(
                    opcode + " of " + buffers.totalBytes() + " bytes is over the limit of " + Integer.MAX_VALUE);
        }
        if ((work.flags() & WorkRequest.INLINE) != 0) {
            if (answered) {
                throw new IllegalArgumentException(opcode + " cannot be inline: its data comes from the peer");
            }
            if (buffers.totalBytes() > maxInlineBytes) {
                throw new IllegalArgumentException("an inline " + opcode + " of " + buffers.totalBytes()
                        + " bytes is over the limit of " + maxInlineBytes);
            }
        }
    }

    /**
     * Checks what a request requires of the peer.
     *
     * @param peer for messages
     * @param immediateData whether it takes sends and writes with immediate data
     * @param atomics whether it does atomics
     * @param readDepth reads and atomics that may be out
     * @param work to be posted
     */
    public static void checkRemote(
            Object peer, boolean immediateData, boolean atomics, int readDepth, WorkRequest work) {
        WorkRequest.Opcode opcode = work.opcode();
        switch (opcode) {
            case SEND_WITH_IMMEDIATE, WRITE_WITH_IMMEDIATE -> {
                if (!immediateData) {
                    throw unsupported(peer, "immediate data");
                }
            }
            case COMPARE_AND_SWAP, FETCH_AND_ADD -> {
                if (!atomics) {
                    throw unsupported(peer, "atomics");
                }
                if (work.buffers().count() != 1 || work.buffers().length(0) != Long.BYTES) {
                    throw new IllegalArgumentException(opcode + " needs one element of 8 bytes for the old value");
                }
                if ((work.remoteAddress() & 7) != 0) {
                    throw new IllegalArgumentException(
                            opcode + " at 0x" + Long.toHexString(work.remoteAddress()) + ": not a multiple of 8");
                }
            }
            default -> {}
        }
        if (isAnswered(opcode) && readDepth == 0) {
            throw new UnsupportedOperationException("the connection with " + peer
                    + " was set up without reads and atomics; give both sides a readDepth of 1 or more");
        }
    }

    private static boolean isAnswered(WorkRequest.Opcode opcode) {
        return opcode.compareTo(WorkRequest.Opcode.READ) >= 0;
    }

    private static UnsupportedOperationException unsupported(Object peer, String what) {
        return new UnsupportedOperationException("the peer " + peer + " is not known to support " + what);
    }

    private static void checkSges(SoftwareDomain domain, int maxSges, ScatterGatherList buffers, boolean written) {
        int count = buffers.count();
        if (count > maxSges) {
            throw new IllegalArgumentException(count + " elements are over the limit of " + maxSges);
        }
        for (int i = 0; i < count; i++) {
            if (!(buffers.region(i) instanceof SoftwareMemory memory) || memory.domain() != domain) {
                throw new IllegalArgumentException(
                        "SGE " + i + " is not registered with this endpoint's memory domain");
            }
            if (written && !memory.allows(MemoryDomain.Access.LOCAL_WRITE)) {
                throw new IllegalArgumentException(
                        "SGE " + i + " lies in memory registered without LOCAL_WRITE, which receives and reads need");
            }
        }
    }
}
