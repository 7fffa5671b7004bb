package org.verbena.transport.software;

import java.lang.foreign.MemorySegment;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.spi.PeerGroup;

/**
 * Memory registered for the peer of one connection: its keys are useless to others, and to everyone once the connection
 * has ended.
 */
public final class ConnectionMemory implements MemoryDomain {
    private final SoftwareDomain domain;
    private final AtomicLong registeredBytes = new AtomicLong();

    /** Whether the peer may use any memory, this or what is shared. Only the loop's thread changes it. */
    private volatile boolean isAllowed = true;

    /** Whose memory the peer may use as well. Only the loop's thread changes it. */
    private volatile @Nullable PeerGroup group;

    /** Set by the loop's thread once. */
    private volatile @Nullable DirectAccess direct;

    /**
     * Without a region.
     *
     * @param domain of the provider, which has the keys
     */
    public ConnectionMemory(SoftwareDomain domain) {
        this.domain = domain;
    }

    @Override
    public RegisteredMemory register(MemorySegment segment, Set<Access> access) {
        RegisteredMemory memory = domain.register(segment, access, this);
        registeredBytes.addAndGet(memory.lengthBytes());
        return memory;
    }

    /**
     * Opens memory that is registered from now on to the peer, where possible.
     *
     * @param opens it
     */
    public void openWith(DirectAccess opens) {
        direct = opens;
    }

    /** Opens memory of this connection that was registered. */
    void open(SoftwareMemory memory) {
        DirectAccess opens = direct;
        if (opens != null && isAllowed) {
            memory.open(opens);
        }
    }

    /**
     * Denies the peer all memory, or allows it.
     *
     * @param allowed whether it may use the memory that it has keys of
     */
    public void allow(boolean allowed) {
        isAllowed = allowed;
    }

    /** Whether the peer may use the memory that it has keys of. */
    public boolean isAllowed() {
        return isAllowed;
    }

    /**
     * Lets the peer use the memory of a group as well.
     *
     * @param joined whose
     * @return the domain to register the group's memory in
     */
    MemoryDomain join(PeerGroup joined) {
        group = joined;
        return new GroupMemory(domain, joined);
    }

    /** Whose memory the peer may use besides this; null for nobody's. */
    @Nullable PeerGroup group() {
        return group;
    }

    /**
     * Called when nothing uses a region any more.
     *
     * @param memory registered here
     */
    public void forget(SoftwareMemory memory) {
        registeredBytes.addAndGet(-memory.lengthBytes());
    }

    /** {@inheritDoc} Counts only this connection's. */
    @Override
    public long registeredBytes() {
        return registeredBytes.get();
    }
}
