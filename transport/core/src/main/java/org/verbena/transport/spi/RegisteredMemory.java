package org.verbena.transport.spi;

import java.lang.foreign.MemorySegment;
import java.util.Set;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import java.util.concurrent.atomic.AtomicReferenceFieldUpdater;
import org.jspecify.annotations.Nullable;

/**
 * Memory that a device knows. It is held by its owner until {@link #close()}, and by each work request that uses it until that completes; the
 * device forgets it when the last of them lets go, so that memory in flight is never pulled away. Any thread.
 */
public abstract class RegisteredMemory implements AutoCloseable {
    private static final AtomicIntegerFieldUpdater<RegisteredMemory> REFERENCES =
            AtomicIntegerFieldUpdater.newUpdater(RegisteredMemory.class, "references");
    private static final AtomicIntegerFieldUpdater<RegisteredMemory> CLOSED =
            AtomicIntegerFieldUpdater.newUpdater(RegisteredMemory.class, "closed");
    private static final AtomicReferenceFieldUpdater<RegisteredMemory, @Nullable Runnable> WHEN_GONE =
            AtomicReferenceFieldUpdater.newUpdater(RegisteredMemory.class, Runnable.class, "whenGone");

    /** Stands in {@code whenGone} once the device has forgotten the memory. */
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
     * Called by a provider.
     *
     * @param segment the memory
     * @param access what may be done with it
     */
    protected RegisteredMemory(MemorySegment segment, Set<MemoryDomain.Access> access) {
        this.segment = segment;
        this.access = Set.copyOf(access);
        this.address = segment.address();
        this.lengthBytes = segment.byteSize();
    }

    /**
     * The key that work requests of this side name it by.
     *
     * @return lkey, or STag
     */
    public abstract int localKey();

    /**
     * The key that the peer names it by.
     *
     * @return rkey, or STag
     */
    public abstract int remoteKey();

    /** Makes the device forget it. Called once, when nobody holds it any more. */
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
     * What may be done with it.
     *
     * @return an immutable set
     */
    public final Set<MemoryDomain.Access> access() {
        return access;
    }

    /**
     * Where it begins.
     *
     * @return the virtual address that local and remote work requests use
     */
    public final long address() {
        return address;
    }

    /**
     * How long it is.
     *
     * @return bytes, 1 or more
     */
    public final long lengthBytes() {
        return lengthBytes;
    }

    /**
     * A token for the peer.
     *
     * @return address, length, key and the rights that a peer can use
     * @throws IllegalStateException it is closed: the peer would be refused
     */
    public final RemoteMemory remote() {
        if (isClosed()) {
            throw new IllegalStateException("registered memory at 0x" + Long.toHexString(address)
                    + " is closed: a token for it would be refused; make the token first, and close the memory when no"
                    + " peer needs it any more");
        }
        return new RemoteMemory(address, lengthBytes, remoteKey(), access);
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
     * Holds it, for a work request.
     *
     * @throws IllegalStateException if it is gone
     */
    public final void retain() {
        if (!tryRetain()) {
            throw new IllegalStateException("registered memory at 0x" + Long.toHexString(address) + " is closed");
        }
    }

    /**
     * Holds it unless it is gone.
     *
     * @return false if it is gone
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

    /** Lets go of it, after {@link #retain()}. */
    public final void release() {
        int now = REFERENCES.decrementAndGet(this);
        if (now == 0) {
            deregister();
            Runnable action = WHEN_GONE.getAndSet(this, Gone.GONE);
            if (action != null) {
                action.run();
            }
        } else if (now < 0) {
            throw new IllegalStateException("registered memory was released more often than retained");
        }
    }

    /**
     * Says when the memory itself may be freed: not at {@link #close()}, but when no work request uses it any more and the device has
     * forgotten it. Runs on the thread that let go last, or at once if it is gone already; several actions run in the order given. If the
     * device refuses to forget the memory, the actions never run.
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

    /** Lets go of it, as its owner. Idempotent. Work in flight finishes first. */
    @Override
    public final void close() {
        if (CLOSED.compareAndSet(this, 0, 1)) {
            release();
        }
    }
}
