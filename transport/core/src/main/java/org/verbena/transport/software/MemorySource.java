package org.verbena.transport.software;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.MemoryDomain;

/** Memory that peers of a provider reach by themselves. Any thread. */
@FunctionalInterface
public interface MemorySource {
    /** As {@link MemoryDomain#allocate}. */
    @Nullable MemorySegment allocate(Arena arena, long lengthBytes, Set<MemoryDomain.Access> access);
}
