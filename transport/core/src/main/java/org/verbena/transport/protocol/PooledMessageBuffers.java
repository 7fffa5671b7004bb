package org.verbena.transport.protocol;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.CompositeByteBuf;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.buffer.RegisteredBufferPool;
import org.verbena.transport.buffer.RegisteredByteBuf;
import org.verbena.transport.spi.MemoryDomain;
import org.verbena.transport.spi.ScatterGatherList;

/** Buffers out of two pools of one device: one pool for both would let either direction starve the other. */
public final class PooledMessageBuffers implements MessageBuffers {
    private final RegisteredBufferPool sendPool;
    private final RegisteredBufferPool receivePool;
    private final MemoryDomain domain;

    /**
     * Makes one.
     *
     * @param sendPool for headers and for copies of what is not in registered memory
     * @param receivePool for receives and for messages that come by rendezvous; registered with LOCAL_WRITE at least
     * @throws IllegalArgumentException the pools are of different domains
     */
    public PooledMessageBuffers(RegisteredBufferPool sendPool, RegisteredBufferPool receivePool) {
        if (!sendPool.domain().equals(receivePool.domain())) {
            throw new IllegalArgumentException("the pools must be of one memory domain");
        }
        if (!receivePool.options().access().contains(MemoryDomain.Access.LOCAL_WRITE)) {
            throw new IllegalArgumentException("the pool for receiving must be registered with LOCAL_WRITE");
        }
        this.sendPool = sendPool;
        this.receivePool = receivePool;
        domain = sendPool.domain();
    }

    @Override
    public @Nullable ByteBuf tryAllocateReceive(int capacityBytes) {
        return allocate(receivePool, capacityBytes);
    }

    @Override
    public @Nullable ByteBuf tryAllocateSend(int capacityBytes) {
        return allocate(sendPool, capacityBytes);
    }

    @Override
    public boolean isReceiveMemoryPlentiful(long moreBytes) {
        return receivePool.metrics().usedBytes() + moreBytes
                <= receivePool.options().maxRegisteredBytes() / 2;
    }

    private static @Nullable ByteBuf allocate(RegisteredBufferPool pool, int capacityBytes) {
        if (capacityBytes > pool.options().maxRegisteredBytes()) {
            // Waiting would be for ever: this throws and says so.
            return pool.allocate(capacityBytes, capacityBytes);
        }
        return pool.tryAllocate(capacityBytes, capacityBytes);
    }

    @Override
    public int gather(ByteBuf buffer, int index, int lengthBytes, int maxPieces, ScatterGatherList into) {
        if (buffer instanceof CompositeByteBuf composite) {
            return gatherComposite(composite, index, lengthBytes, maxPieces, into);
        }
        int covered = lengthBytes;
        int pieces = RegisteredByteBuf.countPieces(buffer, index, covered, domain);
        while (pieces > maxPieces && covered > 1) {
            // A slice of a composite with many components: take a shorter part.
            covered /= 2;
            pieces = RegisteredByteBuf.countPieces(buffer, index, covered, domain);
        }
        return pieces >= 0 && pieces <= maxPieces && RegisteredByteBuf.gather(buffer, index, covered, domain, into)
                ? covered
                : 0;
    }

    private int gatherComposite(
            CompositeByteBuf composite, int index, int lengthBytes, int maxPieces, ScatterGatherList into) {
        int before = into.count();
        int covered = 0;
        while (covered < lengthBytes && into.count() - before < maxPieces) {
            int component = composite.toComponentIndex(index + covered);
            ByteBuf part = composite.internalComponent(component);
            int from = index + covered - composite.toByteIndex(component);
            int length = Math.min(lengthBytes - covered, part.capacity() - from);
            int added = gather(part, from, length, maxPieces - (into.count() - before), into);
            covered += added;
            if (added < length) {
                break;
            }
        }
        return covered;
    }
}
