package org.verbena.transport.software;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/** Memory that peers of a provider reach by themselves. Any thread. */
@FunctionalInterface
public interface MemorySource {
    /** As {@link org.verbena.transport.spi.MemoryDomain#allocate}. */
    @Nullable MemorySegment allocate(Arena arena, long lengthBytes);
}
