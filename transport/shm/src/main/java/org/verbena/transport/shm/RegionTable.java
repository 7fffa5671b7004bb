package org.verbena.transport.shm;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import org.verbena.transport.shm.ffm.SharedFile;

/**
 * What the peer of a connection may access by itself, in the connection's file. Its owner writes it, and bases no
 * decision on what it reads there.
 *
 * <pre>{@code
 * entry: key, 0 if free | number of the file | address | length | offset in the file | rights
 * }</pre>
 *
 * <p>Apart from the entries there is the visit: the key of what the peer is writing just now.
 *
 * <p>An entry belongs to its key if the key is the same before and after the entry, and what it opens, are read. A peer
 * that writes sets the visit first, and then checks the key once more; an owner removes the key first, and then checks
 * for a visit: one of the two sees the other.
 *
 * <p>Most connections never open any memory, and their tables take none. An owner gives the pages of a table without
 * entries back: a peer that looks for a key then finds zeros, which are no entry. The visit is elsewhere, since the
 * peer may write it at any time.
 */
final class RegionTable {
    private static final int ENTRIES = 256;
    private static final int ENTRY_BYTES = 64;

    /** A key that finds none of so many entries free is not published. */
    private static final int PROBES = 8;

    /** Whole pages of 4 KiB, which begin where a page does. */
    static final int BYTES = ENTRIES * ENTRY_BYTES;

    static final int READ = 1;
    static final int WRITE = 2;
    static final int ATOMIC = 4;

    private static final int FILE = 4;
    private static final int ADDRESS = 8;
    private static final int LENGTH = 16;
    private static final int OFFSET = 24;
    private static final int RIGHTS = 32;

    private static final VarHandle INT = ValueLayout.JAVA_INT.varHandle();

    private final MemorySegment memory;
    private final long base;
    private final long visit;

    /**
     * A view.
     *
     * @param memory the connection's file
     * @param base where the table begins
     * @param visit where the visit is
     */
    RegionTable(MemorySegment memory, long base, long visit) {
        this.memory = memory;
        this.base = base;
        this.visit = visit;
    }

    /** A view of the table of a side: 0 is the one that connected. */
    static RegionTable of(MemorySegment memory, int side, int ringBytes) {
        return new RegionTable(memory, Ring.table(side, ringBytes), Ring.control(side) + Ring.VISIT);
    }

    private long entry(int key, int probe) {
        return base + (long) (key + probe & ENTRIES - 1) * ENTRY_BYTES;
    }

    /**
     * Owner: adds an entry. One thread at a time.
     *
     * @return its number, or -1 if there is no room
     */
    int add(int key, int file, long address, long lengthBytes, long offset, int rights) {
        for (int probe = 0; probe < PROBES; probe++) {
            long at = entry(key, probe);
            if ((int) INT.getOpaque(memory, at) == 0) {
                memory.set(ValueLayout.JAVA_INT, at + FILE, file);
                memory.set(ValueLayout.JAVA_LONG, at + ADDRESS, address);
                memory.set(ValueLayout.JAVA_LONG, at + LENGTH, lengthBytes);
                memory.set(ValueLayout.JAVA_LONG, at + OFFSET, offset);
                memory.set(ValueLayout.JAVA_INT, at + RIGHTS, rights);
                INT.setRelease(memory, at, key);
                return (int) ((at - base) / ENTRY_BYTES);
            }
        }
        return -1;
    }

    /**
     * Owner: removes an entry. What is written into the memory afterwards reaches no peer: one that has copied it finds
     * the entry gone when it checks again.
     *
     * @param number of the entry
     */
    void remove(int number) {
        INT.setVolatile(memory, base + (long) number * ENTRY_BYTES, 0);
        VarHandle.fullFence();
    }

    /**
     * Owner, while there are no entries: gives the memory of the table back to the system.
     *
     * @throws IOException the kernel refuses
     */
    void giveBack() throws IOException {
        SharedFile.removePages(memory.asSlice(base, BYTES));
    }

    /**
     * Owner, once the entry is removed: whether the peer claims to be still writing. It may claim so at any time and
     * for any key, so no wait for it is without a limit, on a loop, or with a lock.
     *
     * @param key of an entry that gave the right to write
     */
    boolean isVisited(int key) {
        return (int) INT.getVolatile(memory, visit) == key;
    }

    /**
     * Peer: begins to write.
     *
     * @return false if the entry is gone; then nothing has begun
     */
    boolean enter(long at, int key) {
        INT.setVolatile(memory, visit, key);
        VarHandle.fullFence();
        if ((int) INT.getVolatile(memory, at) == key) {
            return true;
        }
        exit();
        return false;
    }

    /** Peer: ends writing. */
    void exit() {
        INT.setRelease(memory, visit, 0);
    }

    /**
     * Peer: finds an entry.
     *
     * @param key not 0
     * @return where it is, or -1
     */
    long find(int key) {
        for (int probe = 0; probe < PROBES; probe++) {
            long at = entry(key, probe);
            if ((int) INT.getAcquire(memory, at) == key) {
                return at;
            }
        }
        return -1;
    }

    int file(long at) {
        return memory.get(ValueLayout.JAVA_INT, at + FILE);
    }

    long address(long at) {
        return memory.get(ValueLayout.JAVA_LONG, at + ADDRESS);
    }

    long lengthBytes(long at) {
        return memory.get(ValueLayout.JAVA_LONG, at + LENGTH);
    }

    long offset(long at) {
        return memory.get(ValueLayout.JAVA_LONG, at + OFFSET);
    }

    int rights(long at) {
        return memory.get(ValueLayout.JAVA_INT, at + RIGHTS);
    }

    /** Peer: whether the entry, and what was copied since it was found, is still that of the key. */
    boolean isStill(long at, int key) {
        VarHandle.loadLoadFence();
        return (int) INT.getOpaque(memory, at) == key;
    }
}
