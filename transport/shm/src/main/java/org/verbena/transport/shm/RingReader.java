package org.verbena.transport.shm;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;

/**
 * The reading end of a {@link Ring}. What it returns was copied from the memory and checked. Not thread-safe; confined
 * to the loop's thread.
 */
final class RingReader {
    private final MemorySegment memory;
    private final long control;
    private final long data;
    private final int size;
    private long head;
    private long released;

    /** The writer's position when it was last read. */
    private long tail;

    private byte opcode;
    private byte flags;
    private int payloadBytes;
    private int key;
    private int word;
    private long address;
    private int totalBytes;
    private int id;

    RingReader(MemorySegment memory, int direction, int ringBytes) {
        this.memory = memory;
        control = Ring.control(direction);
        data = Ring.data(direction, ringBytes);
        size = ringBytes;
    }

    /** Whether there is a record. */
    boolean hasMore() {
        return head != tail || Ring.position(memory, control + Ring.TAIL) != tail;
    }

    /**
     * Reads the header of the next record.
     *
     * @return false if there is none
     * @throws RingException the writer does not keep to the format
     */
    boolean next() {
        if (head == tail && !look()) {
            return false;
        }
        long record = data + (head & size - 1);
        long first = memory.get(ValueLayout.JAVA_LONG, record);
        long second = memory.get(ValueLayout.JAVA_LONG, record + 8);
        address = memory.get(ValueLayout.JAVA_LONG, record + 16);
        long last = memory.get(ValueLayout.JAVA_LONG, record + 24);
        payloadBytes = (int) first;
        opcode = (byte) (first >>> 32);
        flags = (byte) (first >>> 40);
        key = (int) second;
        word = (int) (second >>> 32);
        totalBytes = (int) last;
        id = (int) (last >>> 32);
        long most = Math.min(tail - head, size - (head & size - 1)) - Ring.HEADER_BYTES;
        if (payloadBytes < 0 || payloadBytes > most) {
            throw new RingException("a record of " + payloadBytes + " bytes where " + most + " fit");
        }
        return true;
    }

    private boolean look() {
        long now = Ring.position(memory, control + Ring.TAIL);
        if (now == tail) {
            return false;
        }
        if (now - tail < 0 || now - head > size || (now & Ring.ALIGNMENT - 1) != 0) {
            throw new RingException("the peer's write position " + now + " after " + tail + ", read up to " + head);
        }
        tail = now;
        return true;
    }

    byte opcode() {
        return opcode;
    }

    boolean has(byte flag) {
        return (flags & flag) != 0;
    }

    /** Whether a message is all here, and nothing but a message. */
    boolean isWholeMessage() {
        return flags == (Ring.FIRST | Ring.LAST) && payloadBytes == totalBytes;
    }

    int payloadBytes() {
        return payloadBytes;
    }

    int key() {
        return key;
    }

    int word() {
        return word;
    }

    long address() {
        return address;
    }

    int totalBytes() {
        return totalBytes;
    }

    int id() {
        return id;
    }

    MemorySegment memory() {
        return memory;
    }

    /** Where the payload is, which the peer may change still. */
    long payload() {
        return data + (head & size - 1) + Ring.HEADER_BYTES;
    }

    /** The records that fit at a time. */
    int mostRecords() {
        return size / Ring.ALIGNMENT;
    }

    /** Done with the record. */
    void consume() {
        head += Ring.recordBytes(payloadBytes);
    }

    /**
     * Gives the memory of consumed records back to the writer.
     *
     * @return whether the writer waits for it and must be rung for
     */
    boolean release() {
        if (released == head) {
            return false;
        }
        released = head;
        Ring.publish(memory, control + Ring.HEAD, head);
        VarHandle.fullFence();
        if (!Ring.isSet(memory, control + Ring.WAITS)) {
            return false;
        }
        Ring.set(memory, control + Ring.WAITS, false);
        return true;
    }

    /**
     * Sets whether the writer has to wake this side for its next record; call {@link #hasMore} once more then.
     */
    void setSleeping(boolean value) {
        Ring.set(memory, control + Ring.SLEEPS, value);
    }
}
