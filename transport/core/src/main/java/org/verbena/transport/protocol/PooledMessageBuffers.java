package org.verbena.transport.protocol;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.CompositeByteBuf;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.slf4j.LoggerFactory;
import org.verbena.transport.buffer.RegisteredBufferPool;
import org.verbena.transport.buffer.RegisteredByteBuf;
import org.verbena.transport.buffer.ReleaseHook;
import org.verbena.transport.spi.MemoryDomain;
import org.verbena.transport.spi.RateLimitedLog;
import org.verbena.transport.spi.ScatterGatherList;

/** Buffers out of two pools of one device: one pool for both would let either direction starve the other. */
public final class PooledMessageBuffers implements MessageBuffers {
    /** A promise leaves this part of the budget to receives, and receives leave it to promises. */
    private static final int LEAST_DIVISOR = 4;
    /** Receives for speed alone take this part of what receives may take: connections to come find the least that they need. */
    private static final int SPEED_DIVISOR = 2;
    /** One connection's share: it gets no further message while its user holds more than this part. */
    private static final int SHARE_DIVISOR = 8;

    /** How often a message asks the JVM again for direct memory that it refused. */
    private static final long DIRECT_RETRY_MILLIS = 100;

    private static final RateLimitedLog DIRECT_MEMORY_LOG =
            new RateLimitedLog(LoggerFactory.getLogger(PooledMessageBuffers.class));

    private final RegisteredBufferPool sendPool;
    private final RegisteredBufferPool receivePool;
    private final MemoryDomain domain;
    private final MemoryQueue queue;
    /** Bytes of messages outside the pool. */
    private final AtomicLong plainBytes = new AtomicLong();

    private final AtomicBoolean retrying = new AtomicBoolean();

    private final ReleaseHook plainReleased = this::plainReleased;

    // Guarded by this.
    private long reservedBytes;
    private long promisedBytes;

    /**
     * Creates one.
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
        queue = new MemoryQueue(receivePool);
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
    public @Nullable ByteBuf tryAllocateMessage(int capacityBytes, Waiter waiter, ReleaseHook account) {
        ByteBuf buffer = queue.isTurnOf(waiter) ? allocateMessage(capacityBytes, account) : null;
        if (buffer == null) {
            queue.addForMessage(waiter);
            // Nobody was notified of memory that was released before the pool was watched.
            buffer = queue.isTurnOf(waiter) ? allocateMessage(capacityBytes, account) : null;
        }
        if (buffer != null) {
            queue.leaveMessages(waiter);
        }
        return buffer;
    }

    private @Nullable ByteBuf allocateMessage(int capacityBytes, ReleaseHook account) {
        RegisteredByteBuf pooled = receivePool.tryAllocate(capacityBytes, capacityBytes);
        if (pooled != null) {
            pooled.chargeTo(account, capacityBytes);
            return pooled;
        }
        long maxBytes = receivePool.options().maxRegisteredBytes();
        ByteBuf plain = null;
        try {
            if (receivePool.metrics().usedBytes() + plainBytes.addAndGet(capacityBytes) <= maxBytes) {
                // There is room, but not in one piece: long-lived receives may lie in every chunk.
                plain = new PlainMessageBuf(capacityBytes, account, plainReleased);
            }
        } catch (OutOfMemoryError noDirectMemory) {
            DIRECT_MEMORY_LOG.warn("the JVM has no direct memory for a message of " + capacityBytes
                    + " bytes, which waits for some: raise -XX:MaxDirectMemorySize, or"
                    + " org.verbena.buffers.maxRegisteredBytes, which is not part of it (" + noDirectMemory + ")");
            retryLater();
        } finally {
            if (plain == null) {
                plainBytes.addAndGet(-capacityBytes);
            }
        }
        return plain;
    }

    /** Has the first waiter try again in a while: nobody reports when others have freed direct memory of the JVM. */
    private void retryLater() {
        if (retrying.compareAndSet(false, true)) {
            CompletableFuture.delayedExecutor(DIRECT_RETRY_MILLIS, TimeUnit.MILLISECONDS)
                    .execute(() -> {
                        retrying.set(false);
                        queue.freed();
                    });
        }
    }

    @Override
    public void awaitReceives(Waiter waiter) {
        queue.addForReceives(waiter);
    }

    @Override
    public void forgetReceives(Waiter waiter) {
        queue.leaveReceives(waiter);
    }

    @Override
    public void forgetMessage(Waiter waiter) {
        queue.leaveMessages(waiter);
    }

    @Override
    public synchronized boolean reserveReceives(int receives, int bufferBytes, boolean forSpeed) {
        long maxBytes = receivePool.options().maxRegisteredBytes();
        long limitBytes = maxBytes - Math.max(maxBytes / LEAST_DIVISOR, promisedBytes);
        if (forSpeed) {
            limitBytes /= SPEED_DIVISOR;
        }
        long bytes = receives * receivePool.blockBytes(bufferBytes);
        if (reservedBytes + bytes > limitBytes) {
            return false;
        }
        reservedBytes += bytes;
        return true;
    }

    @Override
    public synchronized void unreserveReceives(int receives, int bufferBytes) {
        reservedBytes -= receives * receivePool.blockBytes(bufferBytes);
    }

    @Override
    public synchronized int promise(int wantedBytes) {
        long maxBytes = receivePool.options().maxRegisteredBytes();
        long roomBytes = maxBytes - Math.max(maxBytes / LEAST_DIVISOR, reservedBytes);
        int bytes = Math.clamp(roomBytes, 1, wantedBytes);
        promisedBytes = Math.max(promisedBytes, bytes);
        return bytes;
    }

    @Override
    public boolean isMessageAwaited() {
        return queue.isMessageAwaited();
    }

    @Override
    public long shareBytes() {
        return receivePool.options().maxRegisteredBytes() / SHARE_DIVISOR;
    }

    private void plainReleased(int bytes) {
        plainBytes.addAndGet(-bytes);
        queue.freed();
    }

    private static @Nullable ByteBuf allocate(RegisteredBufferPool pool, int capacityBytes) {
        if (capacityBytes > pool.options().maxRegisteredBytes()) {
            // Waiting would never end: this throws, with the reason.
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
