package org.verbena.transport.shm;

import java.lang.foreign.MemorySegment;
import org.verbena.transport.shm.ffm.FileIdentity;

/**
 * The {@link Doorbell} of a peer's loop, mapped once for all connections of this process with that loop. Any thread.
 */
final class PeerDoorbell {
    final FileIdentity identity;
    final MemorySegment memory;

    /** Connections that ring here. Guarded by the mappings. */
    int users;

    /**
     * The sleep from which the loop was woken last. Loops of this process may both wake it, or note an older one: then
     * it is woken once more.
     */
    private volatile long lastWoken;

    PeerDoorbell(FileIdentity identity, MemorySegment memory) {
        this.identity = identity;
        this.memory = memory;
    }

    /** Whether the loop finds what was published before although nobody rings. */
    boolean isLooking() {
        return Doorbell.isLooking(memory);
    }

    /**
     * Rings for a connection.
     *
     * @return 0 if the loop looks by itself, or was woken already; else what {@link #woken} takes once it is
     */
    long ring(int slot) {
        long sleep = Doorbell.ring(memory, slot);
        return sleep == lastWoken ? 0 : sleep;
    }

    /** A wake-up was sent. Not before: one that could not be sent is left to the next connection that rings. */
    void woken(long sleep) {
        lastWoken = sleep;
    }
}
