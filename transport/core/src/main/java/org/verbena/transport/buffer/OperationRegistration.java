package org.verbena.transport.buffer;

import io.netty.buffer.ByteBuf;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.RegisteredMemory;

/**
 * Registers exactly the bytes of one operation, for its duration: a large buffer from outside a pool, or a pooled one
 * that a peer may read or write once, with a key that opens nothing else and is invalid afterwards.
 *
 * <p>A device with memory windows opens pooled memory by a window into the pool's region, which stays registered. There
 * is no cache of registrations of other memory. A device goes on using the physical pages that a region was registered
 * with; when its owner frees the memory and the system maps other pages at the same address, a cached region is
 * silently stale, and there is no way to notice that for memory that others allocate and free: a buffer does not reveal
 * the arena or the allocation that it lies in. The price is registering and deregistering it for each operation, which
 * the memory of a {@link RegisteredBufferPool} avoids.
 */
public final class OperationRegistration {
    private OperationRegistration() {}

    /**
     * Registers a part of a buffer, and retains the buffer until the region is closed and no work request uses it.
     *
     * @param buffer a direct buffer in one piece
     * @param index where the part begins
     * @param lengthBytes its length, 1 or more
     * @param domain where to register
     * @param access the rights of the region
     * @return a region of that part only, which the caller closes; or null if the buffer has no memory address (a heap
     *     buffer, a composite of several): copy it instead
     * @throws IndexOutOfBoundsException outside the buffer
     * @throws org.verbena.transport.RdmaException the device refused; the message says why and what to do
     */
    public static @Nullable RegisteredMemory register(
            ByteBuf buffer, int index, int lengthBytes, MemoryDomain domain, Set<MemoryDomain.Access> access) {
        if (index < 0 || lengthBytes < 1 || index > buffer.capacity() - lengthBytes) {
            throw new IndexOutOfBoundsException("index " + index + " and length " + lengthBytes
                    + " are not at least a byte of a buffer of " + buffer.capacity());
        }
        return buffer.hasMemoryAddress()
                ? register(buffer, segmentOf(buffer.nioBuffer(index, lengthBytes)), domain, access)
                : null;
    }

    /**
     * Registers a part of a buffer that lies in several pieces of memory, each with a region of its own, and retains
     * the buffer for each of them.
     *
     * @param buffer direct: a composite, or a slice of one
     * @param index where the part begins
     * @param lengthBytes its length, 1 or more
     * @param maxSges the most regions to make
     * @param domain where to register
     * @param access the rights of the regions
     * @return the regions, in the order of the bytes, which the caller closes; empty if some of the bytes are on the
     *     heap, or there are more pieces
     * @throws IndexOutOfBoundsException outside the buffer
     * @throws org.verbena.transport.RdmaException the device refused one; none is left registered
     */
    public static List<RegisteredMemory> registerSges(
            ByteBuf buffer,
            int index,
            int lengthBytes,
            int maxSges,
            MemoryDomain domain,
            Set<MemoryDomain.Access> access) {
        if (buffer.nioBufferCount() < 1) {
            return List.of();
        }
        List<MemorySegment> sges = new ArrayList<>();
        for (ByteBuffer part : buffer.nioBuffers(index, lengthBytes)) {
            if (part.hasRemaining()) {
                if (!part.isDirect() || sges.size() == maxSges) {
                    return List.of();
                }
                sges.add(segmentOf(part));
            }
        }
        List<RegisteredMemory> regions = new ArrayList<>(sges.size());
        try {
            for (MemorySegment sge : sges) {
                regions.add(register(buffer, sge, domain, access));
            }
        } catch (Throwable failure) {
            regions.forEach(RegisteredMemory::close);
            throw failure;
        }
        return regions;
    }

    private static RegisteredMemory register(
            ByteBuf buffer, MemorySegment part, MemoryDomain domain, Set<MemoryDomain.Access> access) {
        buffer.retain();
        RegisteredMemory region;
        try {
            region = domain.registerForOperation(
                    part, RegisteredByteBuf.regionOf(buffer, part.address(), part.byteSize()), access);
        } catch (Throwable failure) {
            buffer.release();
            throw failure;
        }
        region.whenGone(buffer::release);
        return region;
    }

    /**
     * The reference on the buffer keeps its memory alive, unless that is of an arena that the user closes, as then the
     * segment shows. One that is confined to the user's thread cannot be used here but by its address.
     */
    @SuppressWarnings("restricted")
    private static MemorySegment segmentOf(ByteBuffer part) {
        MemorySegment segment = MemorySegment.ofBuffer(part);
        return segment.isAccessibleBy(Thread.currentThread()) && !segment.isReadOnly()
                ? segment
                : MemorySegment.ofAddress(segment.address()).reinterpret(segment.byteSize());
    }
}
