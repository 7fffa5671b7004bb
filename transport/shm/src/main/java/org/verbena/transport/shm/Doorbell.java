package org.verbena.transport.shm;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;

/**
 * How the doorbell of a loop lies in shared memory: one bit for each of its connections with one process. That process
 * sets bits, and only the loop clears them.
 *
 * <pre>{@code
 * sleeps: the number of this sleep, 0 or LOOKS | word 0: connections 0 to 63 | word 1: 64 to 127 | ...
 * }</pre>
 *
 * <p>Who writes into a ring, or reads from one whose writer waits, sets the connection's bit, and then looks whether
 * the loop sleeps. A loop that falls asleep sets so, and then looks at the bits once more: one of the two sees the
 * other. A loop with few connections looks at the connections themselves while it is awake, and says so: then nobody
 * needs to ring. These accesses are volatile, so all threads of both processes see them in one order. The peer does not
 * change the number of the sleep: whether it has woken the loop it notes for itself, once the wake-up is sent.
 */
final class Doorbell {
    static final int BYTES = 4096;

    /** Two lines from the words: processors fetch lines in pairs. */
    private static final int SLEEPS = 0;

    /** In place of the number of a sleep: the loop is awake, and looks at each of its connections. */
    static final long LOOKS = -1;

    private static final int WORDS = 128;

    /** Connections that it has bits for. */
    static final int MOST = (BYTES - WORDS) / Long.BYTES * Long.SIZE;

    private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();

    private Doorbell() {}

    private static long at(int word) {
        return WORDS + (long) word * Long.BYTES;
    }

    /**
     * Sets a connection's bit. What was published before is seen by who takes it.
     *
     * @return the number of the loop's sleep, 0 if it is awake
     */
    static long ring(MemorySegment memory, int slot) {
        LONG.getAndBitwiseOr(memory, at(slot / Long.SIZE), 1L << slot);
        return Math.max(0, (long) LONG.getVolatile(memory, (long) SLEEPS));
    }

    /** Whether the loop finds what was published before although nobody rings. */
    static boolean isLooking(MemorySegment memory) {
        if ((long) LONG.getOpaque(memory, (long) SLEEPS) != LOOKS) {
            return false;
        }
        // A loop that stops polling says so and then checks the bits again: it sees the bit, or the ringer the word.
        VarHandle.fullFence();
        return (long) LONG.getOpaque(memory, (long) SLEEPS) == LOOKS;
    }

    /** Clears a word, and returns what it was. */
    static long take(MemorySegment memory, int word) {
        return (long) LONG.getOpaque(memory, at(word)) == 0 ? 0 : (long) LONG.getAndSet(memory, at(word), 0L);
    }

    /** Whether a bit of a word is set. */
    static boolean isRung(MemorySegment memory, int word) {
        return (long) LONG.getVolatile(memory, at(word)) != 0;
    }

    /**
     * Sets that the loop sleeps, and has to be woken, or that it is awake. If it has looked at its connections before,
     * it looks at them once more then, and if it sleeps, {@link #isRung} is to be asked.
     *
     * @param sleep a number above 0 that no sleep before had; 0 if the loop is awake; {@link #LOOKS}
     */
    static void setSleeps(MemorySegment memory, long sleep) {
        LONG.setVolatile(memory, (long) SLEEPS, sleep);
        VarHandle.fullFence(); // what the loop looks at then is read without an order of its own
    }
}
