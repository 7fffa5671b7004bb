package org.verbena.transport.protocol.memory;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.CompositeByteBuf;
import java.util.HashMap;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.slf4j.LoggerFactory;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.RdmaException;
import org.verbena.transport.RegisteredMemoryExhaustedException;
import org.verbena.transport.buffer.RegisteredBufferPool;
import org.verbena.transport.buffer.RegisteredByteBuf;
import org.verbena.transport.buffer.ReleaseHook;
import org.verbena.transport.spi.PeerAddress;
import org.verbena.transport.spi.RateLimitedLog;
import org.verbena.transport.spi.ScatterGatherList;

/**
 * Registered memory of one device, as the protocol uses it. Receiving and sending have budgets of their own, in two
 * pools, so that neither can starve the other. Any thread.
 *
 * <p>The budget for receiving is shared out so that whatever was promised to a peer can be kept: what receives take
 * ({@link #reserveReceives}) and the longest message that was promised ({@link #promise}) are never more than the
 * budget together. A message's memory is taken whole or not at all, first come, first served
 * ({@link #tryAllocateMessage}); so the one whose turn it is gets its memory when those before it have been released,
 * and no connection holds a part while it waits for the rest.
 *
 * <p>Peers that announce messages and do not send them occupy memory. So messages leave what receives may take, and all
 * messages of one address together take no more than half of the budget, or one message: beyond that its connections
 * wait while others pass them by.
 */
public final class MessageBuffers {
    /** Finds the buffers for a device. */
    @FunctionalInterface
    public interface Source {
        /**
         * The buffers in memory of a domain.
         *
         * @param domain an endpoint's memory domain
         * @return shared by all connections of that device
         */
        MessageBuffers forDomain(MemoryDomain domain);
    }

    /** A waiter for memory to receive into. */
    public interface Waiter {
        /**
         * Memory was released, and this waiter should try again. Any thread; must not block. May be called more than
         * once.
         */
        void onMemoryFreed();

        /**
         * The address that its peer's messages are counted by, with those of all its connections.
         *
         * @return of {@link PeerAddress#networkOf}; {@link PeerAddress#UNKNOWN}, which has no limit, unless overridden
         */
        default long network() {
            return PeerAddress.UNKNOWN;
        }
    }

    /** A promise leaves this part of the budget to receives, and receives leave it to promises. */
    private static final int LEAST_DIVISOR = 4;
    /**
     * Receives that are only for speed take this part of what receives may take: later connections find the least that
     * they need.
     */
    private static final int SPEED_DIVISOR = 2;
    /** One connection's share: it gets no further message while its user holds more than this part. */
    private static final int SHARE_DIVISOR = 8;
    /**
     * The messages of one address take no more than this part, or are one message; and the receives of its connections
     * no more than this part of what is for speed, or are of one connection.
     */
    private static final int ADDRESS_DIVISOR = 2;

    private static final RateLimitedLog REFUSALS = new RateLimitedLog(LoggerFactory.getLogger(MessageBuffers.class));

    private final RegisteredBufferPool sendPool;
    private final RegisteredBufferPool receivePool;
    private final MemoryDomain domain;
    /** The budget for receiving. */
    private final long maxBytes;

    private final MemoryQueue queue;
    /** Bytes of messages outside the pool. */
    private final AtomicLong plainBytes = new AtomicLong();

    /** Why the device registered no more when it was last asked; null if it did. */
    private volatile @Nullable RdmaException lastRefusal;

    /** The JVM has refused direct memory once. It may do so again, and never reports that others have freed some. */
    private volatile boolean hasLackedDirect;

    // Guarded by this.
    private long reservedBytes;
    private final Map<Long, Long> reservedByNetwork = new HashMap<>();
    /** How many were promised messages up to each length. */
    private final NavigableMap<Integer, Integer> promises = new TreeMap<>();
    /** The bytes that messages have. */
    private long messageBytes;

    private final Map<Long, Long> bytesByNetwork = new HashMap<>();

    /**
     * Creates one.
     *
     * @param sendPool for headers and for copies of what is not in registered memory
     * @param receivePool for receives and for messages that come by rendezvous; registered with LOCAL_WRITE at least
     * @throws IllegalArgumentException the pools are of different domains
     */
    public MessageBuffers(RegisteredBufferPool sendPool, RegisteredBufferPool receivePool) {
        if (!sendPool.domain().equals(receivePool.domain())) {
            throw new IllegalArgumentException("the pools must be of one memory domain");
        }
        if (!receivePool.options().access().contains(MemoryDomain.Access.LOCAL_WRITE)) {
            throw new IllegalArgumentException("the pool for receiving must be registered with LOCAL_WRITE");
        }
        this.sendPool = sendPool;
        this.receivePool = receivePool;
        domain = sendPool.domain();
        maxBytes = receivePool.options().maxRegisteredBytes();
        queue = new MemoryQueue(receivePool, this::admits);
    }

    /**
     * A buffer for a receive, or for a copy of what came in one. No turn is kept: receives are bounded by what was
     * reserved for them.
     *
     * @param capacityBytes its capacity, all of it writable
     * @return empty, one reference; null if the budget is spent for now, or the device registers no more now
     * @throws RegisteredMemoryExhaustedException it is more than the whole budget
     */
    public @Nullable RegisteredByteBuf tryAllocateReceive(int capacityBytes) {
        return allocate(receivePool, capacityBytes);
    }

    /**
     * A buffer to send from.
     *
     * @param capacityBytes its capacity, all of it writable
     * @return empty, one reference; null if the budget is spent for now, or the device registers no more now
     * @throws RegisteredMemoryExhaustedException it is more than the whole budget
     */
    public @Nullable ByteBuf tryAllocateSend(int capacityBytes) {
        return allocate(sendPool, capacityBytes);
    }

    /**
     * A buffer for a whole message, when it is the waiter's turn. If it lies outside the pool, {@link #gather} covers
     * nothing of it.
     *
     * @param capacityBytes its capacity, all of it writable; within what was promised
     * @param waiter notified when it is worth trying again, if there is none now; {@link #forgetMessage} ends its
     *     waiting
     * @param account charged with the capacity, until the buffer is released
     * @return empty, one reference; null if there is none now or others wait
     */
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

    /**
     * A buffer for a stretch of a stream, without a turn: only while no connection waits for a message's memory.
     *
     * @param capacityBytes its capacity, all of it writable
     * @param waiter whose peer sends it; not notified
     * @param account charged with the capacity, until the buffer is released
     * @return empty, one reference; null if there is no memory for it
     */
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
            pooled = tryRegistered(receivePool, capacityBytes);
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

    /**
     * Memory outside the pool: there is room, but not in one piece, since long-lived receives may lie in every chunk.
     */
    private @Nullable ByteBuf allocatePlain(int capacityBytes, long network, ReleaseHook account) {
        if (!tryCharge(network, capacityBytes)) {
            return null;
        }
        ByteBuf plain = null;
        try {
            if (receivePool.metrics().usedBytes() + plainBytes.addAndGet(capacityBytes) <= maxBytes) {
                plain = new PlainMessageBuf(capacityBytes, new Charge(account, network, capacityBytes, true));
            }
        } catch (OutOfMemoryError noDirectMemory) {
            hasLackedDirect = true;
            REFUSALS.warn("the JVM has no direct memory for a message of " + capacityBytes
                    + " bytes, which waits for some: raise -XX:MaxDirectMemorySize, or"
                    + " org.verbena.buffers.maxRegisteredBytes, which is not part of it (" + noDirectMemory + ")");
        } finally {
            if (plain == null) {
                plainBytes.addAndGet(-capacityBytes);
                uncharge(network, capacityBytes);
            }
        }
        return plain;
    }

    /** One message's part of the budget. */
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
            queue.freed(network);
        }
    }

    private synchronized boolean tryCharge(long network, long bytes) {
        if (messageBytes + bytes > leftBeside(reservedBytes) || !admits(network, bytes)) {
            return false;
        }
        messageBytes += bytes;
        if (network != PeerAddress.UNKNOWN) {
            add(bytesByNetwork, network, bytes);
        }
        return true;
    }

    private synchronized void uncharge(long network, long bytes) {
        messageBytes -= bytes;
        if (network != PeerAddress.UNKNOWN) {
            add(bytesByNetwork, network, -bytes);
        }
    }

    private synchronized boolean admits(long network, long bytes) {
        long heldBytes = bytesByNetwork.getOrDefault(network, 0L);
        return heldBytes == 0 || heldBytes + bytes <= maxBytes / ADDRESS_DIVISOR;
    }

    /** What one direction of the budget, promises or receives, may have when the other has so much. */
    private long leftBeside(long othersBytes) {
        return maxBytes - Math.max(maxBytes / LEAST_DIVISOR, othersBytes);
    }

    /**
     * Whether a waiter must try again by itself after a while: the device or the JVM has refused memory, nothing
     * reports when it has some again, and no other waits before this one.
     *
     * @param waiter in a queue for receives, that of the calling loop, or for a message
     * @return whether it is the one that must
     */
    public boolean mustAskAgain(Waiter waiter) {
        return (hasLackedDirect || receivePool.isInDoubt()) && queue.isFirst(waiter);
    }

    /**
     * Waits for memory for receives. To miss nothing, try again after this.
     *
     * @param waiter notified when it is worth trying again
     */
    public void awaitReceives(Waiter waiter) {
        queue.addForReceives(waiter);
    }

    /**
     * Stops waiting for memory for receives.
     *
     * @param waiter not called from now on, except by a call that is under way
     */
    public void forgetReceives(Waiter waiter) {
        queue.leaveReceives(waiter);
    }

    /**
     * Stops waiting for a message's memory.
     *
     * @param waiter not called from now on, except by a call that is under way
     */
    public void forgetMessage(Waiter waiter) {
        queue.leaveMessages(waiter);
    }

    /**
     * Reserves a part of the budget for receives that are kept posted. It need not be allocated.
     *
     * @param receives how many
     * @param bufferBytes the size of each
     * @param forSpeed whether these are more than what is needed for progress: only while receives take less than half
     *     of what they may
     * @return false if there is no room for so many: nothing was reserved
     */
    public boolean reserveReceives(int receives, int bufferBytes, boolean forSpeed) {
        return new Reservation(PeerAddress.UNKNOWN).reserve(receives, bufferBytes, forSpeed);
    }

    /**
     * What a connection reserves for its receives, nothing at first.
     *
     * @param network of its peer, as in {@link Waiter#network}
     * @return to be released when the connection ends
     */
    public Reservation reservation(long network) {
        return new Reservation(network);
    }

    /**
     * One connection's part of what is reserved for receives. All connections of one address get no more for speed than
     * half of what there is for that, or one connection gets more.
     */
    public final class Reservation {
        private final long network;
        private long bytes;

        private Reservation(long network) {
            this.network = network;
        }

        /**
         * Adds to it, as {@link MessageBuffers#reserveReceives} says.
         *
         * @param receives how many more
         * @param bufferBytes the size of each
         * @param forSpeed whether these are more than what is needed for progress
         * @return false if there is no room for so many: nothing was reserved
         */
        public boolean reserve(int receives, int bufferBytes, boolean forSpeed) {
            synchronized (MessageBuffers.this) {
                long limitBytes = leftBeside(promises.isEmpty() ? 0 : promises.lastKey());
                long moreBytes = receives * receivePool.blockBytes(bufferBytes);
                long ofAddress = reservedByNetwork.getOrDefault(network, 0L);
                if (forSpeed) {
                    limitBytes /= SPEED_DIVISOR;
                    if (ofAddress > bytes && ofAddress + moreBytes > limitBytes / ADDRESS_DIVISOR) {
                        return false;
                    }
                }
                if (reservedBytes + moreBytes > limitBytes) {
                    return false;
                }
                charge(moreBytes);
                return true;
            }
        }

        /** Returns all of it. */
        public void release() {
            synchronized (MessageBuffers.this) {
                charge(-bytes);
            }
        }

        private void charge(long moreBytes) {
            bytes += moreBytes;
            reservedBytes += moreBytes;
            if (network != PeerAddress.UNKNOWN) {
                add(reservedByNetwork, network, moreBytes);
            }
        }
    }

    private static void add(Map<Long, Long> sums, Long network, long bytes) {
        if (sums.merge(network, bytes, Long::sum) == 0) {
            sums.remove(network);
        }
    }

    /**
     * Whether so many receives leave enough to connections to come: those of full length leave half of what receives
     * may take, those of half the length a quarter, and so on. So there are as many connections with one length as with
     * the next.
     *
     * @param receives how many
     * @param bufferBytes the size of each
     * @param halvings how often that was halved
     * @return whether they do
     */
    public synchronized boolean leavesRoom(int receives, int bufferBytes, int halvings) {
        long limitBytes = leftBeside(promises.isEmpty() ? 0 : promises.lastKey());
        long bytes = receives * receivePool.blockBytes(bufferBytes);
        return reservedBytes + bytes <= limitBytes - (limitBytes >> (halvings + 1));
    }

    /**
     * Returns a reservation.
     *
     * @param receives how many
     * @param bufferBytes the size of each
     */
    public synchronized void unreserveReceives(int receives, int bufferBytes) {
        reservedBytes -= receives * receivePool.blockBytes(bufferBytes);
    }

    /**
     * Promises to take a peer's messages up to some length: until {@link #withdraw} there is room for the longest
     * beside all receives.
     *
     * @param wantedBytes the longest that is wanted
     * @return so many bytes or fewer, 1 or more
     */
    public synchronized int promise(int wantedBytes) {
        int bytes = Math.clamp(leftBeside(reservedBytes), 1, wantedBytes);
        promises.merge(bytes, 1, Integer::sum);
        return bytes;
    }

    /**
     * Ends a promise: its peer is gone.
     *
     * @param bytes what was promised
     */
    public synchronized void withdraw(int bytes) {
        promises.computeIfPresent(bytes, (length, peers) -> peers == 1 ? null : peers - 1);
    }

    /**
     * Whether someone waits for a message's memory.
     *
     * @return whether someone waits; this may change at once
     */
    public boolean isMessageAwaited() {
        return queue.isMessageAwaited();
    }

    /**
     * Whether someone waits for memory to receive into, or soon would. Who can do without then leaves it to the
     * receives and messages that were promised some.
     *
     * @return whether it is scarce; this may change at once
     */
    public boolean isScarce() {
        return receivePool.isWatched() || receivePool.isScarce();
    }

    /**
     * How much a connection's user may hold in messages and still get another: it has this and one message at most.
     *
     * @return bytes
     */
    public long shareBytes() {
        return maxBytes / SHARE_DIVISOR;
    }

    /**
     * Why there is no memory for what cannot wait.
     *
     * @param what needs it
     * @return the exception to throw, which names what to change
     */
    public RegisteredMemoryExhaustedException exhausted(String what) {
        RdmaException refusal = lastRefusal;
        String text = "no registered memory for " + what + ": ";
        return refusal == null
                ? new RegisteredMemoryExhaustedException(text + "raise org.verbena.buffers.maxRegisteredBytes")
                : new RegisteredMemoryExhaustedException(text + refusal.getMessage(), refusal);
    }

    private @Nullable RegisteredByteBuf allocate(RegisteredBufferPool pool, int capacityBytes) {
        RegisteredByteBuf buffer = tryRegistered(pool, capacityBytes);
        return buffer == null && capacityBytes > pool.options().maxRegisteredBytes()
                ? pool.allocate(capacityBytes, capacityBytes) // which throws: waiting would never end
                : buffer;
    }

    /** The one place where a refusal of the device becomes the want of memory, which is waited out or worked around. */
    private @Nullable RegisteredByteBuf tryRegistered(RegisteredBufferPool pool, int capacityBytes) {
        try {
            RegisteredByteBuf buffer = pool.tryAllocate(capacityBytes, capacityBytes);
            if (lastRefusal != null && buffer != null) {
                lastRefusal = null;
            }
            return buffer;
        } catch (RdmaException noneNow) {
            lastRefusal = noneNow;
            REFUSALS.warn("no memory can be registered now, so what needs it waits or goes another way: "
                    + noneNow.getMessage());
            return null;
        }
    }

    /**
     * In how many pieces of memory that is registered in this domain a stretch of a buffer lies.
     *
     * @param buffer any buffer
     * @param index where to begin
     * @param lengthBytes how long it is
     * @return -1 if not all of it is registered
     */
    public int pieces(ByteBuf buffer, int index, int lengthBytes) {
        return RegisteredByteBuf.countSges(buffer, index, lengthBytes, domain);
    }

    /**
     * Adds the registered memory behind a stretch of a buffer, through slices and composites, as far as it is
     * registered in this domain and the SGEs suffice.
     *
     * @param buffer any buffer
     * @param index where to begin
     * @param lengthBytes the most bytes to cover
     * @param maxSges the most SGEs to add
     * @param into where they are added
     * @return bytes covered from {@code index} on; 0 if the first of them is not in registered memory
     */
    public int gather(ByteBuf buffer, int index, int lengthBytes, int maxSges, ScatterGatherList into) {
        if (buffer instanceof CompositeByteBuf composite) {
            return gatherComposite(composite, index, lengthBytes, maxSges, into);
        }
        if (maxSges > 0 && buffer instanceof RegisteredByteBuf) { // in one piece
            return RegisteredByteBuf.gather(buffer, index, lengthBytes, domain, into) ? lengthBytes : 0;
        }
        int covered = lengthBytes;
        int pieces = RegisteredByteBuf.countSges(buffer, index, covered, domain);
        while (pieces > maxSges && covered > 1) {
            // A slice of a composite with many components: take a shorter part.
            covered /= 2;
            pieces = RegisteredByteBuf.countSges(buffer, index, covered, domain);
        }
        return pieces >= 0 && pieces <= maxSges && RegisteredByteBuf.gather(buffer, index, covered, domain, into)
                ? covered
                : 0;
    }

    private int gatherComposite(
            CompositeByteBuf composite, int index, int lengthBytes, int maxSges, ScatterGatherList into) {
        int before = into.count();
        int covered = 0;
        while (covered < lengthBytes && into.count() - before < maxSges) {
            int component = composite.toComponentIndex(index + covered);
            ByteBuf part = composite.internalComponent(component);
            int from = index + covered - composite.toByteIndex(component);
            int length = Math.min(lengthBytes - covered, part.capacity() - from);
            int added = gather(part, from, length, maxSges - (into.count() - before), into);
            covered += added;
            if (added < length) {
                break;
            }
        }
        return covered;
    }
}
