package org.verbena.transport.verbs;

import org.jspecify.annotations.Nullable;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.spi.WorkRequest;

/** A slot of a connection's send queue. It remembers what was posted, for the message of a failure. */
final class SendSlot extends WorkSlot {
    private int lengthBytes;
    private WorkRequest.Opcode opcode = WorkRequest.Opcode.SEND;
    private int remoteKey;
    private long remoteAddress;

    /** How it ended, until its turn comes; on siw only. */
    @Nullable WorkStatus outcome;

    /** Remembers what is posted in it. */
    void set(WorkRequest work) {
        workId = work.workId();
        lengthBytes = (int) work.buffers().totalBytes();
        opcode = work.opcode();
        remoteAddress = work.remoteAddress();
        remoteKey = work.remoteKey();
    }

    int lengthBytes() {
        return lengthBytes;
    }

    /** The work request in words. */
    String describe() {
        String text = opcode + " of " + lengthBytes + " bytes";
        return switch (opcode) {
            case SEND, SEND_WITH_IMMEDIATE, SEND_WITH_INVALIDATE -> text;
            default ->
                text + " at 0x" + Long.toHexString(remoteAddress) + " with key 0x" + Integer.toHexString(remoteKey);
        };
    }
}
