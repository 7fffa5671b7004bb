package org.verbena.transport.buffer;

import io.netty.buffer.AbstractByteBufAllocator;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocatorMetric;
import io.netty.buffer.ByteBufAllocatorMetricProvider;
import io.netty.buffer.UnpooledDirectByteBuf;
import io.netty.buffer.UnpooledHeapByteBuf;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.BufferPoolMetrics;
import org.verbena.transport.RdmaException;

/**
 * A {@link RegisteredBufferPool} as Netty's allocator. Direct buffers, the default, come from the pool and are tracked
 * by Netty's leak detector. Where the pool cannot serve a request ({@link BufferPoolOptions#largestPooledBytes()},
 * {@link BufferPoolOptions#onExhaustion()}), and once it is closed, they are plain direct memory: such a buffer works
 * everywhere, at the price of a copy or a registration when it is sent. It is counted ({@link BufferPoolMetrics}), and
 * logged once per reason. Any thread.
 */
public final class RdmaByteBufAllocator extends AbstractByteBufAllocator implements ByteBufAllocatorMetricProvider {
    private static final Logger LOG = LoggerFactory.getLogger(RdmaByteBufAllocator.class);

    private final RegisteredBufferPool pool;
    private final LongAdder exhaustedBuffers = new LongAdder();
    private final LongAdder oversizeBuffers = new LongAdder();
    private final LongAdder plainBytes = new LongAdder();
    private final LongAdder heapBytes = new LongAdder();
    private final AtomicBoolean exhaustionLogged = new AtomicBoolean();
    private final AtomicBoolean oversizeLogged = new AtomicBoolean();
    private final ByteBufAllocatorMetric metric = new ByteBufAllocatorMetric() {
        @Override
        public long usedHeapMemory() {
            return heapBytes.sum();
        }

        @Override
        public long usedDirectMemory() {
            return pool.metrics().registeredBytes() + plainBytes.sum();
        }
    };

    RdmaByteBufAllocator(RegisteredBufferPool pool) {
        super(true);
        this.pool = pool;
    }

    /**
     * The pool that the buffers come from.
     *
     * @return the pool
     */
    public RegisteredBufferPool pool() {
        return pool;
    }

    long exhaustedBuffers() {
        return exhaustedBuffers.sum();
    }

    long oversizeBuffers() {
        return oversizeBuffers.sum();
    }

    long plainBytes() {
        return plainBytes.sum();
    }

    @Override
    public ByteBufAllocatorMetric metric() {
        return metric;
    }

    @Override
    public boolean isDirectBufferPooled() {
        return true;
    }

    // Netty gives heap buffers here where it cannot free direct ones by itself; the pool can.

    @Override
    public ByteBuf buffer() {
        return directBuffer();
    }

    @Override
    public ByteBuf buffer(int initialCapacity) {
        return directBuffer(initialCapacity);
    }

    @Override
    public ByteBuf buffer(int initialCapacity, int maxCapacity) {
        return directBuffer(initialCapacity, maxCapacity);
    }

    @Override
    protected ByteBuf newHeapBuffer(int initialCapacity, int maxCapacity) {
        return new HeapBuffer(this, initialCapacity, maxCapacity);
    }

    @Override
    protected ByteBuf newDirectBuffer(int initialCapacity, int maxCapacity) {
        ByteBuf buffer;
        if (pool.isClosed()) {
            // The device is gone: what a handler still writes is not sent.
            buffer = new PlainBuffer(this, initialCapacity, maxCapacity);
        } else if (initialCapacity > pool.options().largestPooledBytes()) {
            oversizeBuffers.increment();
            if (oversizeLogged.compareAndSet(false, true)) {
                LOG.info(
                        "a buffer of {} bytes is above BufferPoolOptions.largestPooledBytes ({}): it, and others like it from now on, is plain"
                                + " memory, which is copied or registered when it is sent",
                        initialCapacity,
                        pool.options().largestPooledBytes());
            }
            buffer = new PlainBuffer(this, initialCapacity, maxCapacity);
        } else {
            buffer = pooledOrPlain(initialCapacity, maxCapacity);
        }
        return toLeakAwareBuffer(buffer);
    }

    private ByteBuf pooledOrPlain(int initialCapacity, int maxCapacity) {
        if (pool.options().onExhaustion() == BufferPoolOptions.Exhaustion.FAIL) {
            return pool.allocate(initialCapacity, maxCapacity);
        }
        RdmaException refusal = null;
        try {
            RegisteredByteBuf buffer = pool.tryAllocate(initialCapacity, maxCapacity);
            if (buffer != null) {
                return buffer;
            }
        } catch (RdmaException refused) {
            refusal = refused;
        }
        return plainForWantOfRegistered(initialCapacity, maxCapacity, refusal);
    }

    private ByteBuf plainForWantOfRegistered(int initialCapacity, int maxCapacity, @Nullable RdmaException refusal) {
        exhaustedBuffers.increment();
        if (exhaustionLogged.compareAndSet(false, true)) {
            RdmaException why = refusal == null ? pool.exhausted(initialCapacity) : refusal;
            LOG.warn(
                    "buffers are plain memory for now, which is copied or registered when it is sent: {}",
                    why.getMessage());
        }
        return new PlainBuffer(this, initialCapacity, maxCapacity);
    }

    /** Direct memory that is not registered with any device. */
    private static final class PlainBuffer extends UnpooledDirectByteBuf {
        PlainBuffer(RdmaByteBufAllocator allocator, int initialCapacity, int maxCapacity) {
            super(allocator, initialCapacity, maxCapacity);
            allocator.plainBytes.add(initialCapacity);
        }

        @Override
        public ByteBuf capacity(int newCapacity) {
            int before = capacity();
            super.capacity(newCapacity);
            ((RdmaByteBufAllocator) alloc()).plainBytes.add(newCapacity - before);
            return this;
        }

        @Override
        protected void deallocate() {
            ((RdmaByteBufAllocator) alloc()).plainBytes.add(-capacity());
            super.deallocate();
        }
    }

    /** A heap buffer that counts its bytes in the allocator's metrics. */
    private static final class HeapBuffer extends UnpooledHeapByteBuf {
        HeapBuffer(RdmaByteBufAllocator allocator, int initialCapacity, int maxCapacity) {
            super(allocator, initialCapacity, maxCapacity);
        }

        @Override
        protected byte[] allocateArray(int initialCapacity) {
            byte[] array = super.allocateArray(initialCapacity);
            ((RdmaByteBufAllocator) alloc()).heapBytes.add(array.length);
            return array;
        }

        @Override
        protected void freeArray(byte[] array) {
            ((RdmaByteBufAllocator) alloc()).heapBytes.add(-array.length);
            super.freeArray(array);
        }
    }
}
