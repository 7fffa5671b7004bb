package org.verbena.transport.shm;

import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.shm.ffm.FileIdentity;

/**
 * A file of a peer, mapped when an operation needs it. A thread that accesses the memory {@linkplain #enter() enters}
 * for the moment of a copy; a mapping without a thread in it may be unmapped at any time, and is mapped again by the
 * next operation. Any thread.
 */
final class PeerFile {
    private static final AtomicIntegerFieldUpdater<PeerFile> VISITS =
            AtomicIntegerFieldUpdater.newUpdater(PeerFile.class, "visits");

    /** In {@link #visits}: there is no mapping. */
    private static final int UNMAPPED = -1;

    final PeerProcess process;
    final FileIdentity identity;
    final long lengthBytes;
    final boolean isWritable;

    /** How many copies are under way in the mapping. */
    private volatile int visits = UNMAPPED;

    /** Written before {@link #visits} shows that it is there, read by threads that have entered. */
    private @Nullable MemorySegment memory;

    /** By the clock of {@link PeerMappings}. Written by all loops: any of the late values will do. */
    private long lastUsed;

    // Guarded by the mappings.

    /** Connections that have it announced under some number. */
    private int users;

    private int descriptor;
    private boolean refused;

    PeerFile(PeerProcess process, FileIdentity identity, long lengthBytes, boolean isWritable) {
        this.process = process;
        this.identity = identity;
        this.lengthBytes = lengthBytes;
        this.isWritable = isWritable;
    }

    /**
     * Enters the mapping, and maps the file if it is not; {@link #exit} follows.
     *
     * @return the memory; null if the file cannot be mapped, and the caller has not entered
     */
    @Nullable MemorySegment enter() {
        if (!tryEnter() && !process.mappings().map(this)) {
            return null;
        }
        long now = process.mappings().clock();
        if (lastUsed != now) {
            lastUsed = now;
        }
        return memory;
    }

    boolean tryEnter() {
        int now;
        do {
            now = visits;
            if (now == UNMAPPED) {
                return false;
            }
        } while (!VISITS.compareAndSet(this, now, now + 1));
        return true;
    }

    void exit() {
        VISITS.getAndDecrement(this);
    }

    long lastUsed() {
        return lastUsed;
    }

    // Under the lock of the mappings.

    /** It is mapped, and entered by the thread that mapped it. */
    void becomeMapped(MemorySegment made) {
        memory = made;
        visits = 1;
    }

    /** Takes the mapping out, unless there is none or a thread is in it. */
    @Nullable MemorySegment tryLeaveMapping() {
        MemorySegment old = memory;
        if (!VISITS.compareAndSet(this, 0, UNMAPPED)) {
            return null;
        }
        memory = null;
        return old;
    }

    /** One more connection has it, under this descriptor. */
    void addUser(int latestDescriptor) {
        users++;
        descriptor = latestDescriptor;
    }

    /** One less; returns whether none is left. */
    boolean removeUser() {
        return --users == 0;
    }

    int descriptor() {
        return descriptor;
    }

    /** It is not what the peer announced, and is not opened again. */
    void refuse() {
        refused = true;
    }

    boolean isRefused() {
        return refused;
    }
}
