package org.verbena.transport.software;

import io.netty.util.concurrent.FastThreadLocalThread;
import java.lang.foreign.MemorySegment;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.spi.PeerGroup;

/**
 * Registered memory. Work requests of this side hold it by reference count. A peer's access does not hold it: it
 * {@linkplain #tryEnter() enters} for the moment of a copy or a system call, and {@link #deregister()} waits for those
 * moments to pass; so once the owner's {@code close()} has returned, and no work of this side is outstanding, nothing
 * accesses the memory any more. On an event loop, {@code close()} does not wait for a peer that writes the memory by
 * itself ({@link DirectAccess}); {@link #whenGone} says when it has left.
 */
public final class SoftwareMemory extends RegisteredMemory {
    private static final AtomicIntegerFieldUpdater<SoftwareMemory> VISITS =
            AtomicIntegerFieldUpdater.newUpdater(SoftwareMemory.class, "visits");

    /** Between two checks of whether a peer has left, by a thread that may wait: a copy takes about as long. */
    private static final long NANOS_BETWEEN_CHECKS = 20_000;

    /** Set in {@link #visits} when no peer may enter any more. */
    private static final int GONE = 1 << 31;

    private final SoftwareDomain domain;
    private final @Nullable ConnectionMemory owner;
    private final @Nullable PeerGroup group;
    private final int stag;
    private final boolean localWrite;
    private final boolean remoteWrite;
    private final boolean remoteRead;
    private final boolean remoteAtomic;

    /** Peers inside, and {@link #GONE}. Changed by every loop whose peer visits, and by the thread that deregisters. */
    private volatile int visits;

    /** What opened it to a peer; guarded by this. */
    private @Nullable Set<DirectAccess> opened;

    /** Whether a peer's send has taken back the key. Written by that connection's loop, read by all. */
    private volatile boolean invalidated;

    /**
     * Made by its domain.
     *
     * @param domain where it is registered
     * @param owner the only one whose peer may use it, or null
     * @param group the only one whose peers may use it, or null; without either, every peer that has the token may
     * @param stag its key
     * @param segment the memory
     * @param access the rights, implied ones included
     */
    public SoftwareMemory(
            SoftwareDomain domain,
            @Nullable ConnectionMemory owner,
            @Nullable PeerGroup group,
            int stag,
            MemorySegment segment,
            Set<MemoryDomain.Access> access) {
        super(segment, access);
        this.domain = domain;
        this.owner = owner;
        this.group = group;
        this.stag = stag;
        localWrite = access.contains(MemoryDomain.Access.LOCAL_WRITE);
        remoteWrite = access.contains(MemoryDomain.Access.REMOTE_WRITE);
        remoteRead = access.contains(MemoryDomain.Access.REMOTE_READ);
        remoteAtomic = access.contains(MemoryDomain.Access.REMOTE_ATOMIC);
    }

    @Override
    public int localKey() {
        return stag;
    }

    @Override
    public int remoteKey() {
        return stag;
    }

    @Override
    protected void deregister() {
        int inside = VISITS.getAndUpdate(this, now -> now | GONE);
        while ((inside & ~GONE) != 0) {
            // A visit is one copy or one system call that does not block: microseconds.
            Thread.onSpinWait();
            inside = visits;
        }
        Set<DirectAccess> from = withdraw();
        domain.forget(this);
        if (owner != null) {
            owner.forget(this);
        }
        for (DirectAccess by : from) {
            awaitVisitor(by);
        }
    }

    /** Waits for a peer that writes by itself; a loop does not wait, and the memory is gone later. */
    private void awaitVisitor(DirectAccess by) {
        if (Thread.currentThread() instanceof FastThreadLocalThread) {
            if (by.isVisited(this)) {
                Runnable left = delayGone();
                by.whenLeft(this, left);
            }
            return;
        }
        while (by.isVisited(this)) {
            LockSupport.parkNanos(NANOS_BETWEEN_CHECKS);
        }
    }

    /**
     * Opens it to a peer, if peers have a right to it and this one can reach it.
     *
     * @param by opens it
     */
    public void open(DirectAccess by) {
        if (!(remoteRead || remoteWrite || remoteAtomic)) {
            return;
        }
        synchronized (this) {
            Set<DirectAccess> before = opened;
            if (isOpenToPeers() && (before == null || !before.contains(by)) && by.publish(this)) {
                Set<DirectAccess> after = before == null ? new HashSet<>(2) : before; // a server's have thousands
                after.add(by);
                opened = after;
            }
        }
    }

    /** The connection that it was opened to has ended. */
    public synchronized void forget(DirectAccess by) {
        Set<DirectAccess> from = opened;
        if (from != null) {
            from.remove(by);
        }
    }

    /** Closes it to the peers that it was opened to; returns these. */
    private Set<DirectAccess> withdraw() {
        Set<DirectAccess> from;
        synchronized (this) {
            from = opened;
            opened = null;
        }
        if (from == null) {
            return Set.of();
        }
        from.forEach(by -> by.withdraw(this));
        return from;
    }

    /**
     * Begins a peer's access, which must be short and make no callbacks.
     *
     * @return false if the memory is closed or its key taken back
     */
    public boolean tryEnter() {
        int now;
        do {
            now = visits;
            if (now < 0 || invalidated || isClosed()) {
                return false;
            }
        } while (!VISITS.compareAndSet(this, now, now + 1));
        return true;
    }

    /**
     * Whether it was given to the peer only for this connection.
     *
     * @param memory of the connection
     * @return false also for memory that is open to several peers
     */
    public boolean isOwnOf(ConnectionMemory memory) {
        return owner == memory;
    }

    /**
     * Whether it may be used by the peer of this connection.
     *
     * @param memory of the connection
     * @return whether it is only for this peer, for those of its group, or for every peer that has the token
     */
    public boolean isFor(ConnectionMemory memory) {
        return owner == null ? group == null || group == memory.group() : owner == memory;
    }

    /** Whether a peer's access could begin now. */
    public boolean isOpenToPeers() {
        return visits >= 0 && !invalidated && !isClosed();
    }

    /** Ends a peer's access. */
    public void exit() {
        VISITS.getAndDecrement(this);
    }

    /**
     * Takes the key back from all peers.
     *
     * @return false if no peer could use it in the first place
     */
    public boolean invalidate() {
        if (invalidated || isClosed() || !(remoteWrite || remoteRead || remoteAtomic)) {
            return false;
        }
        invalidated = true;
        // The peer that sends it back has done with it.
        withdraw();
        return true;
    }

    /**
     * Where it is registered.
     *
     * @return its domain
     */
    public SoftwareDomain domain() {
        return domain;
    }

    /**
     * Whether it was registered with a right.
     *
     * @param right asked for
     * @return whether it was, or another right implies it
     */
    public boolean allows(MemoryDomain.Access right) {
        return switch (right) {
            case LOCAL_WRITE -> localWrite;
            case REMOTE_WRITE -> remoteWrite;
            case REMOTE_READ -> remoteRead;
            case REMOTE_ATOMIC -> remoteAtomic;
        };
    }

    /**
     * Whether a range lies inside. Offsets are unsigned and may wrap; this does not.
     *
     * @param taggedOffset where the range begins, as a virtual address
     * @param lengthBytes how long it is, 0 or more
     * @return whether all of it is inside
     */
    public boolean contains(long taggedOffset, long lengthBytes) {
        long offset = taggedOffset - address();
        return Long.compareUnsigned(offset, lengthBytes()) <= 0 && lengthBytes <= lengthBytes() - offset;
    }
}
