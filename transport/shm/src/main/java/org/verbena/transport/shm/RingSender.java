package org.verbena.transport.shm;

import io.netty.buffer.ByteBuf;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import org.verbena.transport.software.InboundReads;
import org.verbena.transport.software.SendRing;
import org.verbena.transport.software.SoftwareMemory;
import org.verbena.transport.spi.WorkRequest;

/**
 * Copies the send queue, and the answers to the peer's reads and atomics, into the ring. Not thread-safe; confined to
 * the loop's thread.
 *
 * <pre>{@code
 * send queue:   head              next              tail
 *                | in the ring;    | not yet, or only |
 *                | done, or waits  | in part, in the  |
 *                | for an answer   | ring             |
 * }</pre>
 */
final class RingSender {
    /** A piece of a message that is shorter than this, and not the last, waits for more room in the ring. */
    private static final int LEAST_PIECE_BYTES = 4096;

    /** A request's name that no request in the queue has. */
    private static final int NO_REQUEST = Integer.MIN_VALUE;

    /** What is copied before others have their turn. */
    private static final int TURN_BYTES = 1 << 20;

    private final RingWriter ring;
    private final SendRing sends;
    private final InboundReads inboundReads;
    private final DirectOperations direct;
    private final int readDepth;

    /** The first request that is not completely in the ring. */
    private long next;

    /** How much of it is. */
    private int nextBytes;

    /** Reads and atomics in the ring whose answers have not come. */
    private int awaited;

    /** The oldest of them. */
    private long firstAwaited;

    private boolean blocked;

    /** Others have their turn before more is copied. */
    private boolean pausing;

    /** Copied since the last turn. */
    private int turnBytes;

    /** Where the last record ends that changes the peer's memory: a read must see that. */
    private long lastChange;

    /** Whether the request at {@link #next} goes through the ring. */
    private boolean indirect;

    /** An answer cannot be given any more: what was asked for has been closed. */
    static final class RefusedException extends Exception {
        @java.io.Serial
        private static final long serialVersionUID = 1L;

        private final int request;

        RefusedException(int request) {
            super(null, null, false, false);
            this.request = request;
        }

        int request() {
            return request;
        }
    }

    RingSender(RingWriter ring, SendRing sends, InboundReads inboundReads, DirectOperations direct, int readDepth) {
        this.ring = ring;
        this.sends = sends;
        this.inboundReads = inboundReads;
        this.direct = direct;
        this.readDepth = readDepth;
    }

    /** Whether there is something that could be done, if there is room, or that the peer does not see yet. */
    boolean hasWork() {
        return isUnpublished() || (next < sends.tail() && !waitsForAnswers()) || !inboundReads.isEmpty();
    }

    /** Whether the peer has to read on first. */
    boolean isBlocked() {
        return blocked;
    }

    /** The peer may have read on. */
    boolean hasRoomAgain() {
        return blocked && ring.hasMoreRoom();
    }

    /** Whether the peer owes an answer, or room. */
    boolean isOwed() {
        return blocked || awaited > 0;
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

    /** Whether an answer is awaited. */
    boolean awaitsAnswer() {
        return awaited > 0;
    }

    /** The oldest request that awaits an answer; there is one. */
    long firstAwaited() {
        while (!isAwaited(firstAwaited)) {
            firstAwaited++;
        }
        return firstAwaited;
    }

    private boolean isAwaited(long sequence) {
        int slot = sends.slot(sequence);
        return sequence >= sends.head() && sends.isAnsweredByPeer(slot) && !sends.isAnswered(slot);
    }

    /** The answer to the oldest is complete. */
    void answered() {
        sends.setAnswered(sends.slot(firstAwaited()));
        firstAwaited++;
        awaited--;
    }

    /** What a request is called on the wire. */
    static int id(long sequence) {
        return (int) sequence;
    }

    /** The request with a name, or -1 if there is none in the queue. */
    long sequence(int id) {
        long sequence = sends.head() + (id - (int) sends.head());
        return sequence >= sends.head() && sequence < sends.tail() ? sequence : -1;
    }

    /**
     * Copies a message that is in no queue, if nothing has to go before it and there is room for all of it. {@link
     * #publish} makes it visible.
     *
     * @return false if nothing was copied
     */
    boolean trySend(long first, long second, ByteBuf rest, int index, int restBytes) {
        int bytes = 2 * Long.BYTES + restBytes;
        if (next < sends.tail()
                || !inboundReads.isEmpty()
                || turnBytes >= TURN_BYTES
                || bytes > ring.maxPayloadBytes()
                || ring.claim(bytes, bytes) < 0) {
            return false;
        }
        ByteBuffer to = ring.payloadBuffer(bytes).putLong(first).putLong(second);
        rest.getBytes(index, to);
        ring.commit(Ring.SEND, Ring.FIRST | Ring.LAST, bytes, 0, 0, 0, bytes, id(sends.head()) + NO_REQUEST);
        turnBytes += bytes;
        return true;
    }

    /**
     * Copies as much as there is room for. {@link #publish} makes it visible.
     *
     * @throws RefusedException memory that the peer reads was closed
     * @throws IllegalStateException the arena of registered memory was closed
     */
    void pump() throws RefusedException {
        blocked = false;
        pausing = false;
        while (!blocked && !pausing && !inboundReads.isEmpty()) {
            answer();
            pausing = turnBytes >= TURN_BYTES;
        }
        while (!blocked && !pausing && next < sends.tail() && !waitsForAnswers()) {
            int slot = sends.slot(next);
            if (isDirect(slot)) {
                turnBytes += proceedDirectly(slot);
                pausing = turnBytes >= TURN_BYTES;
                continue;
            }
            indirect = true;
            boolean complete = switch (sends.opcode(slot)) {
                case SEND, SEND_WITH_IMMEDIATE, SEND_WITH_INVALIDATE -> send(slot);
                case WRITE, WRITE_WITH_IMMEDIATE -> write(slot);
                case READ -> ask(slot, Ring.READ_REQUEST, 0);
                case COMPARE_AND_SWAP -> ask(slot, Ring.ATOMIC_REQUEST, 2 * Long.BYTES);
                case FETCH_AND_ADD -> ask(slot, Ring.ATOMIC_REQUEST, 2 * Long.BYTES);
            };
            if (complete) {
                if (!sends.isAnsweredByPeer(slot)) {
                    sends.releaseRegions(slot);
                }
                proceed();
            }
            pausing = turnBytes >= TURN_BYTES;
        }
        turnBytes = 0;
    }

    private void proceed() {
        next++;
        nextBytes = 0;
        indirect = false;
    }

    /** Whether this side may try a request itself: nothing that the peer has to do before it is under way. */
    private boolean isDirect(int slot) {
        return sends.opcode(slot).compareTo(WorkRequest.Opcode.WRITE) >= 0
                && !indirect
                && (nextBytes > 0 || (sends.totalBytes(slot) > 0 && ring.isReadUpTo(lastChange)));
    }

    /** Does a request, or a piece of it, in the peer's memory; returns how much. */
    private int proceedDirectly(int slot) {
        int total = sends.totalBytes(slot);
        int bytes = nextBytes == total ? 0 : direct.proceed(slot, nextBytes);
        if (bytes < 0) {
            indirect = true;
            nextBytes = 0;
            return 0;
        }
        nextBytes += bytes;
        if (nextBytes < total) {
            return bytes;
        }
        if (sends.isAnsweredByPeer(slot)) {
            sends.setAnswered(slot);
            proceed();
        } else if (sends.opcode(slot) == WorkRequest.Opcode.WRITE || reportWrite(slot)) {
            sends.releaseRegions(slot);
            proceed();
        }
        return bytes;
    }

    /** The data is there: reports it to the peer; returns false if there is no room for that. */
    private boolean reportWrite(int slot) {
        if (ring.claim(0, 0) < 0) {
            blocked = true;
            return false;
        }
        ring.commit(
                Ring.WRITTEN,
                Ring.FIRST | Ring.LAST | Ring.IMMEDIATE,
                0,
                0,
                sends.immediateData(slot),
                0,
                sends.totalBytes(slot),
                id(next));
        return true;
    }

    /** Whether there is more to do at once, but others should have their turn. */
    boolean isPausing() {
        return pausing;
    }

    /** Whether the peer does not see all that was copied. */
    boolean isUnpublished() {
        return ring.isUnpublished();
    }

    /** Makes what was copied visible to the peer; false if there is nothing new. */
    boolean publish() {
        return ring.publish();
    }

    /** Asks the peer to ring when there is room, if that is missing; false if it has come meanwhile. */
    boolean awaitRoom() {
        if (blocked) {
            return ring.awaitRoom();
        }
        ring.endWait();
        return true;
    }

    /** Time has passed: see {@link RingWriter#onTick}. */
    void onTick() {
        ring.onTick();
    }

    private boolean waitsForAnswers() {
        int slot = sends.slot(next);
        return awaited > 0
                && (sends.has(slot, WorkRequest.FENCE) || (sends.isAnsweredByPeer(slot) && awaited >= readDepth));
    }

    private boolean send(int slot) {
        int flags = 0;
        int word = 0;
        if (sends.opcode(slot) == WorkRequest.Opcode.SEND_WITH_IMMEDIATE) {
            flags = Ring.IMMEDIATE;
            word = sends.immediateData(slot);
        } else if (sends.opcode(slot) == WorkRequest.Opcode.SEND_WITH_INVALIDATE) {
            flags = Ring.INVALIDATE;
            word = sends.remoteKey(slot);
        }
        return copyPieces(slot, Ring.SEND, flags, 0, word, 0);
    }

    private boolean write(int slot) {
        boolean immediate = sends.opcode(slot) == WorkRequest.Opcode.WRITE_WITH_IMMEDIATE;
        if (sends.totalBytes(slot) == 0 && !immediate) {
            return true; // RFC 5040, 5.4: nothing is accessed
        }
        return copyPieces(
                slot,
                Ring.WRITE,
                immediate ? Ring.IMMEDIATE : 0,
                sends.remoteKey(slot),
                immediate ? sends.immediateData(slot) : 0,
                sends.remoteAddress(slot));
    }

    /** Copies the payload, in as many pieces as it takes; returns whether all is in the ring. */
    private boolean copyPieces(int slot, byte opcode, int flags, int key, int word, long address) {
        int total = sends.totalBytes(slot);
        do {
            int left = total - nextBytes;
            int bytes = ring.claim(left, LEAST_PIECE_BYTES);
            if (bytes < 0) {
                blocked = true;
                return false;
            }
            sends.copyTo(ring.memory(), ring.payload(), slot, nextBytes, bytes);
            int which = (nextBytes == 0 ? Ring.FIRST : 0) | (bytes == left ? Ring.LAST : 0);
            ring.commit(opcode, flags | which, bytes, key, word, address + nextBytes, total, id(next));
            if (opcode == Ring.WRITE) {
                lastChange = ring.tail();
            }
            nextBytes += bytes;
            turnBytes += bytes;
        } while (nextBytes < total && turnBytes < TURN_BYTES);
        return nextBytes == total;
    }

    private boolean ask(int slot, byte opcode, int payloadBytes) {
        int bytes = ring.claim(payloadBytes, payloadBytes);
        if (bytes < 0) {
            blocked = true;
            return false;
        }
        int flags = Ring.FIRST | Ring.LAST;
        if (opcode == Ring.ATOMIC_REQUEST) {
            ring.memory().set(ValueLayout.JAVA_LONG, ring.payload(), sends.compareOrAdd(slot));
            ring.memory().set(ValueLayout.JAVA_LONG, ring.payload() + Long.BYTES, sends.swap(slot));
            flags |= sends.opcode(slot) == WorkRequest.Opcode.FETCH_AND_ADD ? Ring.ADD : 0;
        }
        ring.commit(
                opcode,
                flags,
                payloadBytes,
                sends.remoteKey(slot),
                0,
                sends.remoteAddress(slot),
                sends.totalBytes(slot),
                id(next));
        if (opcode == Ring.ATOMIC_REQUEST) {
            lastChange = ring.tail();
        }
        if (awaited++ == 0) {
            firstAwaited = next;
        }
        return true;
    }

    /** Copies the answer to the peer's oldest read or atomic, or the next piece of it. */
    private void answer() throws RefusedException {
        if (inboundReads.isAtomic()) {
            if (ring.claim(Long.BYTES, Long.BYTES) < 0) {
                blocked = true;
                return;
            }
            ring.memory().set(ValueLayout.JAVA_LONG, ring.payload(), inboundReads.value());
            ring.commit(
                    Ring.ATOMIC_RESPONSE,
                    Ring.FIRST | Ring.LAST,
                    Long.BYTES,
                    0,
                    0,
                    0,
                    Long.BYTES,
                    inboundReads.requestId());
            inboundReads.removeFirst();
            return;
        }
        int left = inboundReads.remainingBytes();
        int bytes = ring.claim(left, LEAST_PIECE_BYTES);
        if (bytes < 0) {
            blocked = true;
            return;
        }
        SoftwareMemory source = inboundReads.source();
        if (source != null) {
            if (!source.tryEnter()) {
                throw new RefusedException(inboundReads.sinkStag());
            }
            try {
                MemorySegment.copy(source.segment(), inboundReads.sourceOffset(), ring.memory(), ring.payload(), bytes);
            } finally {
                source.exit();
            }
        }
        turnBytes += bytes;
        ring.commit(Ring.READ_RESPONSE, bytes == left ? Ring.LAST : 0, bytes, 0, 0, 0, left, inboundReads.sinkStag());
        if (bytes == left) {
            inboundReads.removeFirst();
        } else {
            inboundReads.advance(bytes);
        }
    }
}
