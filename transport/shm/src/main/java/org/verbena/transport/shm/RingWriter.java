package org.verbena.transport.shm;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.shm.ffm.SharedFile;

/**
 * The writing end of a {@link Ring}. Confined to the loop's thread.
 *
 * <p>A ring that is empty begins again at its start, so that a connection with little to say uses the same few pages:
 *
 * <pre>{@code
 *              head = tail: empty, and this far into the data
 *                   v
 * | read           |                                      |
 * | next record    | padding up to the end                |     what the reader finds: first the padding
 * }</pre>
 *
 * <p>The padding keeps both ends in step. It is a record like any other: it is published with the position behind it,
 * and the reader continues where it ends. Only the reader's position shows that the ring is empty, as it shows all
 * room; a reader that lies has its own records overwritten.
 *
 * <p>A burst uses more pages. The writer gives them back once the ring was empty and unused from one of the loop's
 * ticks to the next:
 *
 * <pre>{@code
 * | kept  | given back, if the burst went |
 * |       | beyond what is kept           |
 * 0     4 KiB                            size
 * }</pre>
 *
 * <p>They are zeros then, which mean nothing: a reader reads no further than the tail, and only the writer writes into
 * the data. The next record begins again at the start. A huge page is split, and of pages larger than 4 KiB those go
 * that lie within the range completely.
 *
 * <p>A hostile reader gains nothing. If it lies and reads on, it finds zeros, which are a padding. If it seals the
 * file, the kernel refuses, and this connection keeps its pages. While it holds the lock of the file, the call waits,
 * and the loop with it: a process of the same user can stop this one by a signal as well.
 */
final class RingWriter {
    private static final Logger LOG = LoggerFactory.getLogger(RingWriter.class);

    /**
     * An empty ring begins again from here on, so that the messages of a connection with little to say, and the padding
     * behind them, are in one page. An earlier beginning would cost more paddings.
     */
    private static final int REWIND_BYTES = 3 << 10;

    /**
     * Written between two checks of whether the ring is empty: a check may fetch the line from the reader's processor.
     */
    private static final int BYTES_BETWEEN_CHECKS = 2 << 10;

    /** What an idle ring keeps: what a connection with little to say uses anyway, so that nothing is given back. */
    static final int KEPT_BYTES = 4 << 10;

    /** The system call, which tests replace. */
    @FunctionalInterface
    interface PageRemover {
        void remove(MemorySegment range) throws IOException;
    }

    private final PageRemover pages;
    private final MemorySegment memory;
    private final ByteBuffer buffer;
    private final long control;
    private final long data;
    private final int size;
    private final int maxPayloadBytes;
    private long tail;
    private long published;

    /** The reader's position when it was last read. */
    private long head;

    /** Where it was last checked whether the ring is empty. */
    private long checkedAt;

    /** Where the claimed record begins in the memory. */
    private long record;

    /** Where the furthest record ends in the memory, of those since pages were given back. */
    private long furthest;

    /** Where the tail was at the last tick. */
    private long tailAtTick;

    /** The kernel does not take pages back. */
    private boolean refused;

    /** The reader was asked to ring when there is room. */
    private boolean waits;

    RingWriter(MemorySegment memory, int direction, int ringBytes) {
        this(memory, direction, ringBytes, SharedFile::removePages);
    }

    RingWriter(MemorySegment memory, int direction, int ringBytes, PageRemover pages) {
        this.pages = pages;
        this.memory = memory;
        buffer = memory.asByteBuffer();
        control = Ring.control(direction);
        data = Ring.data(direction, ringBytes);
        size = ringBytes;
        // Several pieces fit, so that the peer copies one out while the next is copied in.
        maxPayloadBytes = ringBytes / 4;
    }

    /**
     * Claims a record at the end; {@link #commit} follows, and nothing else.
     *
     * @param wanted payload, 0 or more
     * @param least payload that is worth a record if all does not fit, up to a quarter of the ring
     * @return the payload that it may have, {@code wanted} at the most; -1 if the reader must read on first
     */
    int claim(int wanted, int least) {
        int needed = Ring.recordBytes(Math.min(wanted, least));
        int at = (int) (tail & size - 1);
        int untilEnd = size - at;
        int skipped = untilEnd < needed || isToRewind(at, wanted) ? untilEnd : 0;
        long free = size - (tail - head);
        if (free < skipped + needed || free < wanted) {
            look();
            free = size - (tail - head);
            if (free < skipped + needed) {
                return -1;
            }
        }
        if (skipped > 0) {
            record = data + at;
            header(Ring.PADDING, 0, skipped - Ring.HEADER_BYTES, 0, 0, 0, 0, 0);
            noteUse(record + Ring.HEADER_BYTES);
            tail += skipped;
            free -= skipped;
            at = 0;
            untilEnd = size;
        }
        record = data + at;
        int room = (int) Math.min(free, untilEnd) - Ring.HEADER_BYTES;
        return Math.min(Math.min(wanted, room), maxPayloadBytes);
    }

    /** Whether to begin again at the start of the data, where the record must fit in front of the padding. */
    private boolean isToRewind(int at, int wanted) {
        if (at < REWIND_BYTES
                || tail - checkedAt < BYTES_BETWEEN_CHECKS
                || Ring.recordBytes(Math.min(wanted, maxPayloadBytes)) > at) {
            return false;
        }
        checkedAt = tail;
        look();
        return head == tail;
    }

    private void look() {
        long now = Ring.position(memory, control + Ring.HEAD);
        // A peer that claims to have read what was never written, or to have unread something, is not believed.
        if (now - head < 0 || now - tail > 0) {
            throw new RingException("the peer's read position " + now + " is not within " + head + " to " + tail);
        }
        head = now;
    }

    /** Where the payload of the claimed record goes. */
    long payload() {
        return record + Ring.HEADER_BYTES;
    }

    /** The same as a buffer, big-endian; valid until the next claim. */
    ByteBuffer payloadBuffer(int bytes) {
        int at = (int) payload();
        return buffer.limit(at + bytes).position(at);
    }

    /** The most that a record may have. */
    int maxPayloadBytes() {
        return maxPayloadBytes;
    }

    /** Whether there are records that the reader does not see yet. */
    boolean isUnpublished() {
        return published != tail;
    }

    MemorySegment memory() {
        return memory;
    }

    /** Writes the header of the claimed record, which is complete with it. */
    void commit(byte opcode, int flags, int payloadBytes, int key, int word, long address, int totalBytes, int id) {
        header(opcode, flags, payloadBytes, key, word, address, totalBytes, id);
        int bytes = Ring.recordBytes(payloadBytes);
        tail += bytes;
        noteUse(record + bytes);
    }

    private void noteUse(long end) {
        if (end > furthest) {
            furthest = end;
        }
    }

    private void header(
            byte opcode, int flags, int payloadBytes, int key, int word, long address, int totalBytes, int id) {
        memory.set(ValueLayout.JAVA_LONG, record, payloadBytes | ((long) opcode << 32) | ((long) flags << 40));
        memory.set(ValueLayout.JAVA_LONG, record + 8, (key & 0xffff_ffffL) | ((long) word << 32));
        memory.set(ValueLayout.JAVA_LONG, record + 16, address);
        memory.set(ValueLayout.JAVA_LONG, record + 24, (totalBytes & 0xffff_ffffL) | ((long) id << 32));
    }

    /**
     * Lets the reader see all records.
     *
     * @return false if it has seen them already
     */
    boolean publish() {
        if (published == tail) {
            return false;
        }
        published = tail;
        Ring.publish(memory, control + Ring.TAIL, tail);
        return true;
    }

    /**
     * Whether the reader sleeps by itself, and must be woken for what was published before; no later call repeats it.
     */
    boolean wakeReader() {
        // The reader sets that it sleeps, and then checks once more: one of the two sees the other.
        VarHandle.fullFence();
        if (!Ring.isSet(memory, control + Ring.SLEEPS)) {
            return false;
        }
        Ring.set(memory, control + Ring.SLEEPS, false);
        return true;
    }

    /** Time has passed: gives pages back if the ring was idle meanwhile, and they are worth it. */
    void onTick() {
        boolean isIdle = tail == tailAtTick;
        tailAtTick = tail;
        if (isIdle && furthest > data + KEPT_BYTES && !refused && Ring.position(memory, control + Ring.HEAD) == tail) {
            giveBack();
        }
    }

    private void giveBack() {
        furthest = 0;
        // The next record may begin at the start, however few bytes were written since the last check.
        checkedAt = tail - BYTES_BETWEEN_CHECKS;
        try {
            pages.remove(memory.asSlice(data + KEPT_BYTES, size - KEPT_BYTES));
        } catch (IOException e) {
            refused = true;
            LOG.debug("an idle connection keeps the pages of its ring", e);
        }
    }

    /** Where the next record begins. */
    long tail() {
        return tail;
    }

    /** Whether the reader is done with all records before a position of {@link #tail()}. */
    boolean isReadUpTo(long position) {
        if (position - head > 0) {
            look();
        }
        return position - head <= 0;
    }

    /** Whether the reader has read on since the last {@link #claim} that failed. */
    boolean hasMoreRoom() {
        return Ring.position(memory, control + Ring.HEAD) != head;
    }

    /**
     * Asks the reader to ring when it has read on.
     *
     * @return false if it has already
     */
    boolean awaitRoom() {
        waits = true;
        Ring.set(memory, control + Ring.WAITS, true);
        VarHandle.fullFence();
        return !hasMoreRoom();
    }

    /** The reader need not ring any more when it has read on. */
    void endWait() {
        if (waits) {
            waits = false;
            Ring.set(memory, control + Ring.WAITS, false);
        }
    }
}
