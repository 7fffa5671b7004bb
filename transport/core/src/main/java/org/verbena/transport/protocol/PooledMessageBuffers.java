package org.verbena.transport.protocol;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.CompositeByteBuf;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.slf4j.LoggerFactory;
import org.verbena.transport.buffer.RegisteredBufferPool;
import org.verbena.transport.buffer.RegisteredByteBuf;
import org.verbena.transport.buffer.ReleaseHook;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.spi.PeerAddress;
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
    /** The messages of one address take no more than this part, or are one message. */
    private static final int ADDRESS_DIVISOR = 2;

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

    // Guarded by this.
    private long reservedBytes;
    private long promisedBytes;
    /** What messages have. */
    private long messageBytes;

    private final Map<Long, Long> bytesByNetwork = new HashMap<>();

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
        queue = new MemoryQueue(receivePool, this::admits);
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
        ByteBuf buffer = queue.isTurnOf(waiter) ? allocateMessage(capacityBytes, waiter, account) : null;
        if (buffer == null) {
            queue.addForMessage(waiter, capacityBytes);
            // Nobody was notified of memory that was released before the pool was watched.
            buffer = queue.isTurnOf(waiter) ? allocateMessage(capacityBytes, waiter, account) : null;
        }
        if (buffer != null) {
            queue.leaveMessages(waiter);
        }
        return buffer;
    }

    private @Nullable ByteBuf allocateMessage(int capacityBytes, Waiter waiter, ReleaseHook account) {
        long network = waiter.network();
        ByteBuf message = null;
        try {
            message = allocatePooled(capacityBytes, network, account);
            if (message == null) {
                message = allocatePlain(capacityBytes, network, account);
            }
        } finally {
            if (message == null) {
                queue.passOn(waiter);
            }
        }
        return message;
    }

    @Override
    public @Nullable ByteBuf tryAllocateStretch(int capacityBytes, Waiter waiter, ReleaseHook account) {
        if (queue.isMessageAwaited()) {
            return null;
        }
        ByteBuf stretch = null;
        try {
            stretch = allocatePooled(capacityBytes, waiter.network(), account);
        } finally {
            if (stretch == null) {
                queue.passOn(waiter);
            }
        }
        return stretch;
    }

    private @Nullable ByteBuf allocatePooled(int capacityBytes, long network, ReleaseHook account) {
        long blockBytes = receivePool.blockBytes(capacityBytes);
        if (!tryCharge(network, blockBytes)) {
            return null;
        }
        RegisteredByteBuf pooled = null;
        try {
            pooled = receivePool.tryAllocate(capacityBytes, capacityBytes);
        } finally {
            if (pooled == null) {
                uncharge(network, blockBytes);
            }
        }
        if (pooled != null) {
            pooled.chargeTo(new Charge(account, network, blockBytes, false), capacityBytes);
        }
        return pooled;
    }

    /** Memory outside the pool: there is room, but not in one piece, for long-lived receives may lie in every chunk. */
    private @Nullable ByteBuf allocatePlain(int capacityBytes, long network, ReleaseHook account) {
        if (!tryCharge(network, capacityBytes)) {
            return null;
        }
        long maxBytes = receivePool.options().maxRegisteredBytes();
        ByteBuf plain = null;
        try {
            if (receivePool.metrics().usedBytes() + plainBytes.addAndGet(capacityBytes) <= maxBytes) {
                plain = new PlainMessageBuf(capacityBytes, new Charge(account, network, capacityBytes, true));
            }
        } catch (OutOfMemoryError noDirectMemory) {
            DIRECT_MEMORY_LOG.warn("the JVM has no direct memory for a message of " + capacityBytes
                    + " bytes, which waits for some: raise -XX:MaxDirectMemorySize, or"
                    + " org.verbena.buffers.maxRegisteredBytes, which is not part of it (" + noDirectMemory + ")");
            retryLater();
        } finally {
            if (plain == null) {
                plainBytes.addAndGet(-capacityBytes);
                uncharge(network, capacityBytes);
            }
        }
        return plain;
    }

    /** What one message has of the budget. */
    private final class Charge implements ReleaseHook {
        private final ReleaseHook account;
        private final long network;
        private final long bytes;
        private final boolean plain;

        Charge(ReleaseHook account, long network, long bytes, boolean plain) {
            this.account = account;
            this.network = network;
            this.bytes = bytes;
            this.plain = plain;
        }

        @Override
        public void onReleased(int units) {
            if (plain) {
                plainBytes.addAndGet(-bytes);
            }
            uncharge(network, bytes);
            account.onReleased(units);
            queue.freed();
        }
    }

    private synchronized boolean tryCharge(long network, long bytes) {
        if (messageBytes + bytes > leftBeside(reservedBytes) || !admits(network, bytes)) {
            return false;
        }
        messageBytes += bytes;
        if (network != PeerAddress.UNKNOWN) {
            bytesByNetwork.merge(network, bytes, Long::sum);
        }
        return true;
    }

    private synchronized void uncharge(long network, long bytes) {
        messageBytes -= bytes;
        if (network != PeerAddress.UNKNOWN) {
            bytesByNetwork.computeIfPresent(network, (key, held) -> held == bytes ? null : held - bytes);
        }
    }

    private synchronized boolean admits(long network, long bytes) {
        long heldBytes = bytesByNetwork.getOrDefault(network, 0L);
        return heldBytes == 0 || heldBytes + bytes <= receivePool.options().maxRegisteredBytes() / ADDRESS_DIVISOR;
    }

    /** What one direction of the budget, promises or receives, may have when the other has so much. */
    private long leftBeside(long othersBytes) {
        long maxBytes = receivePool.options().maxRegisteredBytes();
        return maxBytes - Math.max(maxBytes / LEAST_DIVISOR, othersBytes);
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
        long limitBytes = leftBeside(promisedBytes);
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
        int bytes = Math.clamp(leftBeside(reservedBytes), 1, wantedBytes);
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
