package org.verbena.testing;

import java.lang.foreign.MemorySegment;
import org.verbena.transport.software.SendRing;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.WorkRequest;

/**
 * Puts the requests of the send queue on their way, and keeps count of those that wait for an answer. Not thread-safe;
 * confined to the loop's thread.
 *
 * <pre>{@code
 * send queue:   head            next            tail
 *                | on their way;  | not yet       |
 *                | done, or wait  |               |
 *                | for an answer  |               |
 * }</pre>
 */
final class SendQueue {
    private final SendRing sends;
    private final Lane lane;
    private final int readDepth;

    /** The first request that is not on its way. */
    private long next;

    /** Reads and atomics without an answer. */
    private int awaited;

    /** Not behind the oldest of them. */
    private long firstAwaited;

    SendQueue(SendRing sends, Lane lane, int readDepth) {
        this.sends = sends;
        this.lane = lane;
        this.readDepth = readDepth;
        next = sends.head();
        firstAwaited = next;
    }

    Lane lane() {
        return lane;
    }

    /** Sends as much as may be under way; the lane calls when more may. */
    void pump() {
        while (next < sends.tail() && !waitsForAnswers() && lane.hasRoom()) {
            int slot = sends.slot(next);
            if (!isEmptyWrite(slot)) {
                lane.send(delivery(slot));
            }
            if (sends.isAnsweredByPeer(slot)) {
                awaited++;
            } else {
                sends.releaseRegions(slot);
            }
            next++;
        }
    }

    private boolean waitsForAnswers() {
        int slot = sends.slot(next);
        return awaited > 0
                && (sends.has(slot, WorkRequest.FENCE) || (sends.isAnsweredByPeer(slot) && awaited >= readDepth));
    }

    /** RFC 5040, 5.4: nothing is accessed. */
    private boolean isEmptyWrite(int slot) {
        return sends.opcode(slot) == WorkRequest.Opcode.WRITE && sends.totalBytes(slot) == 0;
    }

    private Delivery delivery(int slot) {
        int key = sends.remoteKey(slot);
        long address = sends.remoteAddress(slot);
        int word = sends.immediateData(slot);
        return switch (sends.opcode(slot)) {
            case SEND -> Delivery.message(next, payload(slot), 0, 0, 0);
            case SEND_WITH_IMMEDIATE -> Delivery.message(next, payload(slot), EndpointHandler.WITH_IMMEDIATE, word, 0);
            case SEND_WITH_INVALIDATE ->
                Delivery.message(next, payload(slot), EndpointHandler.WITH_INVALIDATE, key, key);
            case WRITE -> Delivery.write(next, payload(slot), key, address, 0, 0);
            case WRITE_WITH_IMMEDIATE ->
                Delivery.write(next, payload(slot), key, address, EndpointHandler.WITH_IMMEDIATE, word);
            case READ -> Delivery.read(next, sends.totalBytes(slot), key, address);
            case FETCH_AND_ADD ->
                Delivery.atomic(Delivery.Kind.FETCH_AND_ADD, next, key, address, sends.compareOrAdd(slot), 0);
            case COMPARE_AND_SWAP ->
                Delivery.atomic(
                        Delivery.Kind.COMPARE_AND_SWAP, next, key, address, sends.compareOrAdd(slot), sends.swap(slot));
        };
    }

    private byte[] payload(int slot) {
        byte[] bytes = new byte[sends.totalBytes(slot)];
        if (bytes.length > 0) {
            sends.copyTo(MemorySegment.ofArray(bytes), 0, slot, 0, bytes.length);
        }
        return bytes;
    }

    /** Whether the oldest request is done. */
    boolean isHeadDone() {
        long head = sends.head();
        if (head >= next) {
            return false;
        }
        int slot = sends.slot(head);
        return !sends.isAnsweredByPeer(slot) || sends.isAnswered(slot);
    }

    /** Whether a request is in the queue. */
    boolean has(long sequence) {
        return sequence >= sends.head() && sequence < sends.tail();
    }

    /**
     * The slot of the request that an answer is for: the oldest without one.
     *
     * @throws IllegalStateException it is for another one
     */
    int awaitedSlot(long sequence) {
        if (awaited == 0 || firstAwaited() != sequence) {
            throw new IllegalStateException("an answer to request " + sequence + ", which is not the oldest");
        }
        return sends.slot(sequence);
    }

    private long firstAwaited() {
        firstAwaited = Math.max(firstAwaited, sends.head());
        while (!sends.isAnsweredByPeer(sends.slot(firstAwaited)) || sends.isAnswered(sends.slot(firstAwaited))) {
            firstAwaited++;
        }
        return firstAwaited;
    }

    /** The oldest has its answer. */
    void answered() {
        sends.setAnswered(sends.slot(firstAwaited()));
        firstAwaited++;
        awaited--;
    }
}
