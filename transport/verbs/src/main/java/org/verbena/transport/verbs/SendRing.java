package org.verbena.transport.verbs;

import org.verbena.transport.spi.WorkRequest;

/**
 * The outstanding work requests of a send queue. It remembers what each of them was, for the message of a failure.
 */
final class SendRing extends WorkRing {
    private final int[] lengths;
    private final WorkRequest.Opcode[] opcodes;
    private final long[] remoteAddresses;
    private final int[] remoteKeys;

    SendRing(int depth, int maxSges) {
        super(depth, maxSges);
        lengths = new int[depth];
        opcodes = new WorkRequest.Opcode[depth];
        remoteAddresses = new long[depth];
        remoteKeys = new int[depth];
    }

    /** Takes the next slot for a work request. */
    void take(WorkRequest work) {
        int slot = next();
        lengths[slot] = (int) work.buffers().totalBytes();
        opcodes[slot] = work.opcode();
        remoteAddresses[slot] = work.remoteAddress();
        remoteKeys[slot] = work.remoteKey();
        take(work.workId());
    }

    int lengthBytes(int slot) {
        return lengths[slot];
    }

    /** A work request in words. */
    String describe(int slot) {
        WorkRequest.Opcode opcode = opcodes[slot];
        String text = opcode + " of " + lengths[slot] + " bytes";
        return switch (opcode) {
            case SEND, SEND_WITH_IMMEDIATE, SEND_WITH_INVALIDATE -> text;
            default ->
                text + " at 0x" + Long.toHexString(remoteAddresses[slot]) + " with key 0x"
                        + Integer.toHexString(remoteKeys[slot]);
        };
    }
}
