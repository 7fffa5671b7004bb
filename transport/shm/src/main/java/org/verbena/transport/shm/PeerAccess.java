package org.verbena.transport.shm;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.software.ConnectionMemory;
import org.verbena.transport.software.SoftwareDomain;
import org.verbena.transport.software.SoftwareMemory;

/**
 * Decides whether the peer may touch this side's memory, when this side does it for the peer. Not thread-safe; confined
 * to the loop's thread.
 */
final class PeerAccess {
    private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();

    private final SoftwareDomain domain;
    private final ConnectionMemory own;
    private @Nullable Publisher publisher;
    private String denial = "";

    PeerAccess(SoftwareDomain domain, ConnectionMemory own) {
        this.domain = domain;
        this.own = own;
    }

    /**
     * Looks memory up.
     *
     * @param key the peer's
     * @param address where, in this process
     * @param bytes how much, 0 or more
     * @param right needed
     * @return the memory, or null with {@link #denial()}
     */
    @Nullable SoftwareMemory find(int key, long address, long bytes, Access right) {
        SoftwareMemory memory = domain.find(key);
        if (!own.isAllowed()) {
            denial = "the peer has not proved its pre-shared key yet";
        } else if (memory == null) {
            denial = "nothing is registered with this key";
        } else if (!memory.isFor(own)) {
            denial = "the memory is for other peers";
        } else if (!memory.isOpenToPeers()) {
            denial = "the memory is closed, or its key was invalidated";
        } else if (!memory.allows(right)) {
            denial = "the memory was registered without " + right;
        } else if (!memory.contains(address, bytes)) {
            denial = "it exceeds the memory of " + memory.lengthBytes() + " bytes at 0x"
                    + Long.toHexString(memory.address());
        } else {
            return memory;
        }
        return null;
    }

    /** Takes back a key that only this peer was given; false with {@link #denial()} if there is none. */
    boolean invalidate(int key) {
        SoftwareMemory memory = domain.find(key);
        if (memory == null || !memory.isOwnOf(own) || !memory.invalidate()) {
            denial = "it is not a key that only this peer was given";
            return false;
        }
        return true;
    }

    /** The connection is up: memory is opened to the peer from now on. */
    void publishWith(Publisher opens) {
        publisher = opens;
        own.openWith(opens);
    }

    /** Opens memory that this side had to access for the peer, so that next time the peer accesses it by itself. */
    void openForNextTime(SoftwareMemory memory) {
        Publisher opens = publisher;
        if (opens != null) {
            memory.open(opens);
        }
    }

    /** Why not. */
    String denial() {
        return denial;
    }

    /** The memory was closed between two pieces of a message. */
    void denyClosed() {
        denial = "the memory was closed, or its key invalidated, during the operation";
    }

    /**
     * Does an atomic.
     *
     * @param memory that may be accessed
     * @param at the offset in it; a multiple of 8
     * @return the old value
     */
    static long atomic(MemorySegment memory, long at, boolean add, long compareOrAdd, long swap) {
        return add
                ? (long) LONG.getAndAdd(memory, at, compareOrAdd)
                : (long) LONG.compareAndExchange(memory, at, compareOrAdd, swap);
    }
}
