package org.verbena.transport;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Registers memory with a device, like a protection domain. Any thread. */
public interface MemoryDomain {

    /**
     * Registers native memory. Registration costs a system call and pins the pages; register large segments and keep
     * them.
     *
     * @param segment native memory whose arena is shared or global; it must stay alive until the region is deregistered
     * @param access the rights of the region; remote writes and atomics imply LOCAL_WRITE
     * @return the region, with one reference that {@link RegisteredMemory#close()} releases
     * @throws IllegalArgumentException heap memory, an empty segment, or a segment confined to one thread
     * @throws RdmaException the device refused; the message says why and what to do (memlock limit ...)
     */
    RegisteredMemory register(MemorySegment segment, Set<Access> access);

    /**
     * Registers native memory, as {@link #register(MemorySegment, Set)} does.
     *
     * @param segment native memory whose arena is shared or global
     * @param access the rights of the region; naming a right twice changes nothing
     * @return the region, with one reference that {@link RegisteredMemory#close()} releases
     */
    default RegisteredMemory register(MemorySegment segment, Access... access) {
        return register(segment, new HashSet<>(List.of(access)));
    }

    /**
     * Registers native memory for one operation of a connection. It differs from {@link #register(MemorySegment, Set)}
     * in that the peer's access may end a while after {@link RegisteredMemory#close()}: it has ended when the actions
     * of {@link RegisteredMemory#whenGone} run, and the memory must not be used for anything else before that. So a
     * device may reuse what a key is made of.
     *
     * @param segment native memory whose arena is shared or global
     * @param within registered memory that contains it, if there is some: then it need not be registered once more; its
     *     rights are not extended
     * @param access the rights of the region
     * @return a region of the segment only, with one reference that {@link RegisteredMemory#close()} releases
     * @throws RdmaException the device refused
     */
    default RegisteredMemory registerForOperation(
            MemorySegment segment, @Nullable RegisteredMemory within, Set<Access> access) {
        return register(segment, access);
    }

    /**
     * Allocates memory of the kind that peers of this domain's device reach most cheaply, if the device has such a
     * kind. It is not registered. Buffer pools call this.
     *
     * @param arena frees it when it is closed
     * @param lengthBytes how much, 1 or more
     * @param access the rights that it will be registered with: what peers may write is kept apart
     * @return zeroed memory that begins at a page; null if all memory is alike, or none of this kind is left
     */
    default @Nullable MemorySegment allocate(Arena arena, long lengthBytes, Set<Access> access) {
        return null;
    }

    /**
     * The number of bytes currently registered.
     *
     * @return the sum over all live regions
     */
    long registeredBytes();

    /**
     * Calls a listener when the device was removed or has failed and nothing is connected over it any more: immediately
     * if that has happened already, and never for a domain without a device. Owners of memory registered here then
     * close it, since the process keeps the device open until all is closed.
     *
     * @param listener called at most once, on any thread; must not block
     */
    default void whenLost(Runnable listener) {}

    /** Access rights to registered memory. Reading it locally is always allowed. */
    enum Access {
        /** Receives, reads and atomics of this side may write it. */
        LOCAL_WRITE,
        /** The peer may write it. */
        REMOTE_WRITE,
        /** The peer may read it. */
        REMOTE_READ,
        /** The peer may perform atomics on it. */
        REMOTE_ATOMIC
    }
}
