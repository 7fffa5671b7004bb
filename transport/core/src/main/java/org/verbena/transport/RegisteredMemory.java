package org.verbena.transport;

import java.lang.foreign.MemorySegment;
import java.util.Set;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import java.util.concurrent.atomic.AtomicReferenceFieldUpdater;
import org.jspecify.annotations.Nullable;

/**
 * Memory that is registered with a device. Its owner holds it until {@link #close()}, and each work request that uses
 * it holds it until it completes. It is deregistered when the last of them releases it, so memory in flight always
 * stays registered. Any thread.
 */
public abstract class RegisteredMemory implements AutoCloseable {
    private static final AtomicIntegerFieldUpdater<RegisteredMemory> REFERENCES =
            AtomicIntegerFieldUpdater.newUpdater(RegisteredMemory.class, "references");
    private static final AtomicIntegerFieldUpdater<RegisteredMemory> CLOSED =
            AtomicIntegerFieldUpdater.newUpdater(RegisteredMemory.class, "closed");
    private static final AtomicIntegerFieldUpdater<RegisteredMemory> DELAYS =
            AtomicIntegerFieldUpdater.newUpdater(RegisteredMemory.class, "delays");
    private static final AtomicReferenceFieldUpdater<RegisteredMemory, @Nullable Runnable> WHEN_GONE =
            AtomicReferenceFieldUpdater.newUpdater(RegisteredMemory.class, Runnable.class, "whenGone");

    /** The value of {@code whenGone} once the memory is deregistered. */
    private enum Gone implements Runnable {
        GONE;

        @Override
        public void run() {}
    }

    private final MemorySegment segment;
    private final Set<MemoryDomain.Access> access;
    private final long address;
    private final long lengthBytes;
    private volatile int references = 1;
    private volatile int closed;
    private volatile @Nullable Runnable whenGone;

    /**
     * How many things {@link #whenGone} still waits for: the last release of the memory, and one for each {@link
     * #delayGone}.
     */
    @SuppressWarnings("UnusedVariable") // DELAYS reads it
    private volatile int delays = 1;

    /**
     * Called by a provider.
     *
     * @param segment the memory
     * @param access the rights of the region
     */
    protected RegisteredMemory(MemorySegment segment, Set<MemoryDomain.Access> access) {
        this.segment = segment;
        this.access = Set.copyOf(access);
        this.address = segment.address();
        this.lengthBytes = segment.byteSize();
    }

    /**
     * The key that local work requests use.
     *
     * @return lkey, or STag
     */
    public abstract int localKey();

    /**
     * The key that the peer uses.
     *
     * @return rkey, or STag
     */
    public abstract int remoteKey();

    /** Deregisters it. Called once, when nothing holds it any more. */
    protected abstract void deregister();

    /**
     * The memory.
     *
     * @return the segment that was registered
     */
    public final MemorySegment segment() {
        return segment;
    }

    /**
     * The rights of the region.
     *
     * @return an immutable set
     */
    public final Set<MemoryDomain.Access> access() {
        return access;
    }

    /**
     * Its start address.
     *
     * @return the virtual address that local and remote work requests use
     */
    public final long address() {
        return address;
    }

    /**
     * Its length.
     *
     * @return bytes, 1 or more
     */
    public final long lengthBytes() {
        return lengthBytes;
    }

    /**
     * Creates a token for the peer.
     *
     * @return a token with address, length, key and the rights that a peer can use
     * @throws IllegalStateException it is closed, or was registered without a right for peers: the peer would be
     *     refused
     */
    public final RemoteMemory remote() {
        if (isClosed()) {
            throw new IllegalStateException("registered memory at 0x" + Long.toHexString(address)
                    + " is closed: a token for it would be refused; make the token first, and close the memory when no"
                    + " peer needs it any more");
        }
        RemoteMemory token = new RemoteMemory(address, lengthBytes, remoteKey(), access);
        if (token.access().isEmpty()) {
            throw new IllegalStateException("registered memory at 0x" + Long.toHexString(address)
                    + " gives peers no right: register it with REMOTE_READ, REMOTE_WRITE or REMOTE_ATOMIC");
        }
        return token;
    }

    /**
     * Whether its owner has closed it.
     *
     * @return true from {@link #close()} on, though work in flight may hold it still
     */
    public final boolean isClosed() {
        return closed != 0;
    }

    /**
     * Whether nothing holds it any more, so that nothing can be posted with it.
     *
     * @return true once it is deregistered
     */
    public final boolean isGone() {
        return references == 0;
    }

    /**
     * Holds it for a work request.
     *
     * @throws IllegalStateException if it is deregistered
     */
    public final void retain() {
        if (!tryRetain()) {
            throw new IllegalStateException("registered memory at 0x" + Long.toHexString(address) + " is closed");
        }
    }

    /**
     * Holds it unless it is deregistered.
     *
     * @return false if it is deregistered
     */
    public final boolean tryRetain() {
        int now;
        do {
            now = references;
            if (now == 0) {
                return false;
            }
        } while (!REFERENCES.compareAndSet(this, now, now + 1));
        return true;
    }

    /** Releases it, after {@link #retain()}. */
    public final void release() {
        int now = REFERENCES.decrementAndGet(this);
        if (now == 0) {
            deregister();
            endDelay();
        } else if (now < 0) {
            throw new IllegalStateException("registered memory was released more often than retained");
        }
    }

    /**
     * Called within {@link #deregister()} to delay {@link #whenGone} until something else has happened as well.
     *
     * @return to be run once when it has, on any thread
     */
    protected final Runnable delayGone() {
        DELAYS.incrementAndGet(this);
        return this::endDelay;
    }

    private void endDelay() {
        if (DELAYS.decrementAndGet(this) == 0) {
            Runnable action = WHEN_GONE.getAndSet(this, Gone.GONE);
            if (action != null) {
                action.run();
            }
        }
    }

    /**
     * Runs an action when the memory itself may be freed: not at {@link #close()}, but when no work request uses it any
     * more and it is deregistered. It runs on the thread that released it last, or immediately if it is deregistered
     * already; several actions run in the order given. If the device refuses to deregister it, the actions never run.
     *
     * @param action frees the memory; must not throw
     */
    public final void whenGone(Runnable action) {
        Runnable first;
        Runnable both;
        do {
            first = whenGone;
            if (first instanceof Gone) {
                action.run();
                return;
            }
            Runnable before = first;
            both = before == null
                    ? action
                    : () -> {
                        before.run();
                        action.run();
                    };
        } while (!WHEN_GONE.compareAndSet(this, first, both));
    }

    /** Releases it as its owner. Idempotent. It stays registered until work in flight has completed. */
    @Override
    public final void close() {
        if (CLOSED.compareAndSet(this, 0, 1)) {
            release();
        }
    }
}
