package org.verbena.transport.shm;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;

/**
 * How a connection lies in shared memory. Each direction is a queue of records with one writer and one reader, in two
 * processes.
 *
 * <pre>{@code
 * file:    control 0, control 1: one page | data 0 | data 1 | table 0 | table 1
 *
 * control: tail | head | the reader sleeps | the writer waits | secret | the visit of the side's table
 * data:    ... | header 32 | payload, padded to 32 | header 32 | payload | ...   used round and round
 * header:  payload bytes, opcode, flags | key, word | address | total bytes, id
 * }</pre>
 *
 * <p>What an idle connection needs is together in one page: a page is the least that the kernel provides.
 *
 * <p>Positions only grow; what is not between head and tail is the writer's. The peer may write anything anywhere at
 * any time: a reader copies a header before it checks it, and each side keeps its own positions outside of the memory.
 */
final class Ring {
    /** Records begin and end at multiples of it, so a header is never in two pieces. */
    static final int ALIGNMENT = 32;

    static final int HEADER_BYTES = 32;

    /** Fields in lines of their own, two lines apart: processors fetch lines in pairs. */
    static final int TAIL = 0;

    static final int HEAD = 128;
    static final int SLEEPS = 256;
    static final int WAITS = 384;

    /** Of the first direction: with it the connecting side proves that the file is its own. */
    static final int SECRET = 512;

    /** See {@link RegionTable}. */
    static final int VISIT = 640;

    /** Of one direction. */
    private static final int CONTROL_BYTES = 2048;

    static final int MIN_BYTES = 16 << 10;
    static final int MAX_BYTES = 64 << 20;

    // What a record is.

    /** Fills the rest of the data up to its end. */
    static final byte PADDING = 0;

    static final byte SEND = 1;
    static final byte WRITE = 2;
    static final byte READ_REQUEST = 3;
    static final byte READ_RESPONSE = 4;
    static final byte ATOMIC_REQUEST = 5;
    static final byte ATOMIC_RESPONSE = 6;

    /** A write with immediate data whose data the writer has written itself. */
    static final byte WRITTEN = 7;

    /** The message's first piece. */
    static final byte FIRST = 1;

    /** The message's last piece. */
    static final byte LAST = 2;

    /** The word is immediate data. */
    static final byte IMMEDIATE = 4;

    /** The word is a key to invalidate. */
    static final byte INVALIDATE = 8;

    /** The atomic adds; otherwise it compares and swaps. */
    static final byte ADD = 16;

    private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();
    private static final VarHandle INT = ValueLayout.JAVA_INT.varHandle();

    private Ring() {}

    /**
     * What a record takes.
     *
     * @param payloadBytes of it, 0 or more
     * @return bytes with header and padding
     */
    static int recordBytes(int payloadBytes) {
        return HEADER_BYTES + payloadBytes + ALIGNMENT - 1 & -ALIGNMENT;
    }

    /** The bytes of the file for two directions, with the tables of both sides behind them. */
    static long fileBytes(int ringBytes) {
        return table(2, ringBytes);
    }

    /** Where the table of a side begins: 0 is the one that connected. */
    static long table(int side, int ringBytes) {
        return data(2, ringBytes) + (long) side * RegionTable.BYTES;
    }

    /** Where the control of a direction begins: 0 is from the side that connected to the side that accepted. */
    static long control(int direction) {
        return direction * (long) CONTROL_BYTES;
    }

    /** Where the data of a direction begins. */
    static long data(int direction, int ringBytes) {
        return control(2) + direction * (long) ringBytes;
    }

    static void putSecret(MemorySegment memory, long high, long low) {
        memory.set(ValueLayout.JAVA_LONG, SECRET, high);
        memory.set(ValueLayout.JAVA_LONG, SECRET + Long.BYTES, low);
    }

    static boolean hasSecret(MemorySegment memory, long high, long low) {
        return memory.get(ValueLayout.JAVA_LONG, SECRET) == high
                && memory.get(ValueLayout.JAVA_LONG, SECRET + Long.BYTES) == low;
    }

    static long position(MemorySegment memory, long at) {
        return (long) LONG.getAcquire(memory, at);
    }

    static void publish(MemorySegment memory, long at, long position) {
        LONG.setRelease(memory, at, position);
    }

    static boolean isSet(MemorySegment memory, long at) {
        return (int) INT.getVolatile(memory, at) != 0;
    }

    static void set(MemorySegment memory, long at, boolean value) {
        INT.setVolatile(memory, at, value ? 1 : 0);
    }
}
