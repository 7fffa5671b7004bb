package org.verbena.transport.spi;

import java.lang.foreign.MemorySegment;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** Where memory is made known to a device: a protection domain. Any thread. */
public interface MemoryDomain {

    /**
     * Registers native memory. Registration costs a system call and pins the pages; register large pieces and keep them.
     *
     * @param segment native memory whose arena is shared or global; it must stay alive until the region is gone
     * @param access what may be done with it; remote writes and atomics imply LOCAL_WRITE
     * @return the region, with one reference that {@link RegisteredMemory#close()} gives up
     * @throws IllegalArgumentException heap memory, an empty segment or one that a single thread owns
     * @throws org.verbena.transport.spi.RdmaException the device refused; the message says why and what to do (memlock limit ...)
     */
    RegisteredMemory register(MemorySegment segment, Set<Access> access);

    /**
     * Registers native memory, as {@link #register(MemorySegment, Set)} does.
     *
     * @param segment native memory whose arena is shared or global
     * @param access what may be done with it; naming a right twice changes nothing
     * @return the region, with one reference that {@link RegisteredMemory#close()} gives up
     */
    default RegisteredMemory register(MemorySegment segment, Access... access) {
        return register(segment, new HashSet<>(List.of(access)));
    }

    /**
     * Bytes that are registered now.
     *
     * @return the sum over all live regions
     */
    long registeredBytes();

    /** What may be done with registered memory. Reading it locally is always allowed. */
    enum Access {
        /** Receives, reads and atomics of this side may write it. */
        LOCAL_WRITE,
        /** The peer may write it. */
        REMOTE_WRITE,
        /** The peer may read it. */
        REMOTE_READ,
        /** The peer may do atomics on it. */
        REMOTE_ATOMIC
    }
}
