package org.verbena.transport.software;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.spi.PeerGroup;

/**
 * Memory registered for the peers of a group's connections: its keys are useless to others.
 *
 * @param domain of the provider, which has the keys
 * @param group whose peers may use it
 */
record GroupMemory(SoftwareDomain domain, PeerGroup group) implements MemoryDomain {
    @Override
    public RegisteredMemory register(MemorySegment segment, Set<Access> access) {
        return domain.register(segment, access, group);
    }

    @Override
    public @Nullable MemorySegment allocate(Arena arena, long lengthBytes, Set<Access> access) {
        return domain.allocate(arena, lengthBytes, access);
    }

    /** {@inheritDoc} Counts all of the provider's. */
    @Override
    public long registeredBytes() {
        return domain.registeredBytes();
    }
}
