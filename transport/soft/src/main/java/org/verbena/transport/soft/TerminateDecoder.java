package org.verbena.transport.soft;

import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import org.verbena.transport.WorkStatus;

/** Reads the peer's Terminate message: why the connection ends, and which request of this side it is about. */
final class TerminateDecoder {
    /** In the message's first word: a segment's length and DDP header follow. */
    private static final int HAS_HEADER = 0x4000;

    private TerminateDecoder() {}

    /**
     * The content of a Terminate message.
     *
     * @param control layer, type and code as they came
     * @param reason the nearest that is known
     * @param operation what it is about, for a message
     * @param sequence which request of the send queue failed; -1 if it is not known
     */
    record Ending(int control, TerminateReason reason, String operation, long sequence) {}

    /**
     * Reads a message.
     *
     * @param message its payload, 4 bytes or more
     * @param peer its sender
     * @param sender knows which request a message belonged to
     * @param outbound reads that wait for the peer
     * @return what it says
     */
    static Ending decode(byte[] message, InetSocketAddress peer, FpduSender sender, OutboundReads outbound) {
        ByteBuffer in = ByteBuffer.wrap(message);
        int word = in.getInt();
        boolean siw = TerminateReason.isInOrderOfSiw(word);
        if (siw) {
            word = TerminateReason.inOrderOfRfc(word);
        }
        int control = word >>> 16;
        int flags = word & 0xffff;
        TerminateReason reason = TerminateReason.of(control);
        String operation = "an operation on the connection with " + peer;
        long sequence = -1;
        if ((flags & HAS_HEADER) != 0 && in.remaining() >= 2 + 14) {
            in.getShort();
            int ddp = in.getShort() & 0xffff;
            int opcode = ddp & Rdmap.OPCODE_MASK;
            int key = in.getInt();
            operation = Rdmap.name(opcode) + " to " + peer;
            if ((ddp & Rdmap.TAGGED) != 0) {
                long offset = in.getLong();
                operation += String.format(" (address 0x%x, key 0x%08x)", offset, key);
                if (opcode == Rdmap.WRITE) {
                    sequence = sender.sequenceOfWrite(key, offset);
                }
            } else if (in.remaining() >= 12) {
                int queue = in.getInt();
                if (siw && queue == Rdmap.QUEUE_READ_REQUEST) {
                    // Its message number is the read's length. It answers in order, so it is the oldest.
                    sequence = oldestRead(outbound);
                } else {
                    sequence = sender.sequenceOf(queue, in.getInt());
                }
            }
        } else if (reason.status == WorkStatus.REMOTE_ACCESS_ERROR) {
            // The peer does not say which request. Of those that can still wait, a read is the likeliest.
            sequence = oldestRead(outbound);
        }
        return new Ending(control, reason, operation, sequence);
    }

    private static long oldestRead(OutboundReads outbound) {
        return outbound.awaitsResponse() ? outbound.awaitedSequence() : -1;
    }
}
