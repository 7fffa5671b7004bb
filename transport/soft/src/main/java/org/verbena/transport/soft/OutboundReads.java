package org.verbena.transport.soft;

import org.verbena.transport.software.SendRing;
import org.verbena.transport.spi.WorkRequest;

/**
 * Reads and atomics of this side that wait for their responses, oldest first: the peer answers in order. Most of them
 * are requests of the send queue, named by their sequence numbers there; one may be the read that says "ready to
 * receive", and a read may be asked for in two parts. Not thread-safe; confined to the loop's thread.
 */
final class OutboundReads {
    /** Takes the place of a sequence number for the read that says "ready to receive". */
    private static final long READY_READ = -1;

    private static final int PAGE_BYTES = 4096;

    private final SendRing ring;
    private final int depth;
    private final long[] sequences;
    private final int mask;
    private long head;
    private long tail;
    private int nextNumber = 1;

    /**
     * None yet.
     *
     * @param ring the send queue
     * @param depth how many may be out
     */
    OutboundReads(SendRing ring, int depth) {
        this.ring = ring;
        this.depth = depth;
        // One more for the ready-to-receive read.
        int slots = Integer.highestOneBit(depth * 2 + 1);
        sequences = new long[slots];
        mask = slots - 1;
    }

    private long first() {
        return sequences[(int) head & mask];
    }

    /** How many may be out. */
    int depth() {
        return depth;
    }

    /**
     * Whether there is room.
     *
     * @param count for so many
     * @return whether the peer has agreed to so many more
     */
    boolean hasRoom(int count) {
        return tail - head + count <= depth;
    }

    /** The message number of the next request. */
    int nextNumber() {
        return nextNumber;
    }

    /**
     * Adds a request of the send queue.
     *
     * @param sequence its number there
     * @return its message number
     */
    int add(long sequence) {
        sequences[(int) tail++ & mask] = sequence;
        return nextNumber++;
    }

    /**
     * Adds the first part of a read whose rest is {@linkplain #add added} next.
     *
     * @param sequence its number in the send queue
     * @return its message number
     */
    int addFirstPart(long sequence) {
        return add(partOf(sequence));
    }

    /**
     * Adds the read that says "ready to receive".
     *
     * @return its message number
     */
    int addReady() {
        return add(READY_READ);
    }

    /** Maps the sequence number of a read to the number of its first part, and back. */
    private static long partOf(long sequence) {
        return READY_READ - 1 - sequence;
    }

    /** Whether any of them waits for the peer. */
    boolean awaitsResponse() {
        return head != tail;
    }

    /** Whether the next response belongs to a read; false for an atomic, and if none was asked for. */
    boolean awaitsRead() {
        if (!awaitsResponse()) {
            return false;
        }
        long sequence = first();
        return sequence <= READY_READ || ring.opcode(ring.slot(sequence)) == WorkRequest.Opcode.READ;
    }

    /**
     * The sequence number of the read or atomic that the next response belongs to; -1 for the ready-to-receive read.
     */
    long awaitedSequence() {
        long sequence = first();
        return sequence < READY_READ ? partOf(sequence) : sequence;
    }

    /** Whether the next response brings the first of two parts of a read. */
    boolean awaitsFirstPart() {
        return first() < READY_READ;
    }

    /** How many bytes of its read have come once the next response is complete. */
    int awaitedEndBytes() {
        int slot = ring.slot(awaitedSequence());
        return awaitsFirstPart() ? bytesOfPageFrom(ring.remoteAddress(slot)) : ring.totalBytes(slot);
    }

    /** The message number that the next response's request had. */
    int awaitedNumber() {
        return nextNumber - (int) (tail - head);
    }

    /** The response to the oldest read or atomic is complete. */
    void answered() {
        long sequence = first();
        head++;
        if (sequence > READY_READ) {
            ring.setAnswered(ring.slot(sequence));
        }
    }

    /** Responses that have come. */
    long answers() {
        return head;
    }

    /**
     * What lies on the page of an address, from there on.
     *
     * @param address of the peer's memory
     * @return bytes, as Linux's siw counts pages
     */
    static int bytesOfPageFrom(long address) {
        return PAGE_BYTES - (int) (address & PAGE_BYTES - 1);
    }
}
