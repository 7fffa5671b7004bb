package org.verbena.transport.buffer;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.ffm.MappedMemory;

/**
 * A piece of memory with its own arena, registered as one region. Its life:
 *
 * <pre>{@code
 * in the pool --all its blocks are home, and it is idle--> region closed --the device has forgotten it--> arena closed
 * }</pre>
 *
 * so that memory is never freed under a buffer, nor under work in flight.
 */
final class Chunk {
    /** What slabs are measured in: the page of every system that has RDMA devices, or a fraction of it. */
    static final int PAGE_BYTES = 4096;

    final MemorySegment segment;
    final RegisteredMemory region;
    final long lengthBytes;
    final PageMap pageMap;

    /** When the last page became free, by the pool's clock. Guarded by the pool's lock. */
    long idleSinceNanos;

    /** The next in a list of chunks to free. */
    @Nullable Chunk next;

    private final Arena arena;

    private Chunk(Arena arena, MemorySegment segment, RegisteredMemory region) {
        this.arena = arena;
        this.segment = segment;
        this.region = region;
        lengthBytes = segment.byteSize();
        pageMap = new PageMap(Math.toIntExact(lengthBytes / PAGE_BYTES));
    }

    /** Allocates and registers memory; on failure frees what it had allocated. */
    static Chunk create(MemoryDomain domain, BufferPoolOptions options, long lengthBytes) {
        Arena arena = Arena.ofShared();
        try {
            MemorySegment preferred =
                    options.hugePages() ? null : domain.allocate(arena, lengthBytes, options.access());
            MemorySegment segment = preferred == null ? allocate(arena, options, lengthBytes) : preferred;
            return new Chunk(arena, segment, domain.register(segment, options.access()));
        } catch (Throwable failure) {
            arena.close();
            throw failure;
        }
    }

    /** Uses mmap where it is available: an arena would write zeros to all of it. */
    private static MemorySegment allocate(Arena arena, BufferPoolOptions options, long lengthBytes) {
        if (options.hugePages()) {
            return MappedMemory.mapHuge(arena, lengthBytes);
        }
        return MappedMemory.isAvailable()
                ? MappedMemory.map(arena, lengthBytes)
                : arena.allocate(lengthBytes, PAGE_BYTES);
    }

    boolean isWhole() {
        return pageMap.freePages() == pageMap.pages();
    }

    /**
     * Frees the memory, once the region is gone.
     *
     * @return false if some other thread uses a view of it in a system call just now: try again later
     */
    boolean tryFree() {
        try {
            arena.close();
            return true;
        } catch (IllegalStateException inUse) {
            return !arena.scope().isAlive();
        }
    }
}
