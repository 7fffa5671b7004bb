package org.verbena.transport.software;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.EnumSet;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.RdmaException;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.spi.PeerGroup;
import org.verbena.transport.spi.Secrets;

/**
 * The protection domain of a provider: maps STags to memory.
 *
 * <p>An STag is 32 random bits: neither STags seen before nor those of closed regions reveal anything about another one
 * (RFC 5042, 6.1.1 and 8).
 *
 * <p>Registration takes a lock; the lookup for a peer's request takes none.
 */
public final class SoftwareDomain implements MemoryDomain {

    /**
     * The most regions at a time: enough for any program, and so few that a guess hits one of them at most once in 256
     * tries.
     */
    public static final int MAX_REGIONS = 1 << 24;

    /** A thread that never runs: memory that it may access belongs to no single thread. */
    private static final Thread NOBODY = Thread.ofPlatform().unstarted(() -> {});

    private final MemorySource source;
    private final AtomicLong registeredBytes = new AtomicLong();
    private final Object lock = new Object();

    /** Changed under the lock. */
    private final KeyTable table = new KeyTable();

    /** Without memory of its own. */
    public SoftwareDomain() {
        this((arena, lengthBytes, access) -> null);
    }

    /**
     * With memory of its own.
     *
     * @param source what {@link #allocate} asks
     */
    public SoftwareDomain(MemorySource source) {
        this.source = source;
        Secrets.prepare();
    }

    @Override
    public @Nullable MemorySegment allocate(Arena arena, long lengthBytes, Set<Access> access) {
        return source.allocate(arena, lengthBytes, access);
    }

    @Override
    public RegisteredMemory register(MemorySegment segment, Set<Access> access) {
        return register(segment, access, null, null);
    }

    /** Registers memory that only the owner's peer may use. */
    RegisteredMemory register(MemorySegment segment, Set<Access> access, ConnectionMemory owner) {
        RegisteredMemory memory = register(segment, access, owner, null);
        owner.open((SoftwareMemory) memory);
        return memory;
    }

    /** Registers memory that only the peers of the group's connections may use. */
    RegisteredMemory register(MemorySegment segment, Set<Access> access, PeerGroup group) {
        return register(segment, access, null, group);
    }

    private RegisteredMemory register(
            MemorySegment segment, Set<Access> access, @Nullable ConnectionMemory owner, @Nullable PeerGroup group) {
        if (!segment.isNative()) {
            throw new IllegalArgumentException("heap memory cannot be registered; allocate it with Arena.ofShared()");
        }
        if (segment.byteSize() == 0) {
            throw new IllegalArgumentException("an empty segment cannot be registered");
        }
        if (!segment.isAccessibleBy(NOBODY)) {
            throw new IllegalArgumentException(
                    "memory of a confined arena cannot be registered; allocate it with Arena.ofShared()");
        }
        if (!segment.scope().isAlive()) {
            throw new IllegalArgumentException("the arena of the memory is closed");
        }
        Set<Access> rights = EnumSet.noneOf(Access.class);
        rights.addAll(access);
        if (rights.contains(Access.REMOTE_WRITE) || rights.contains(Access.REMOTE_ATOMIC)) {
            rights.add(Access.LOCAL_WRITE);
        }
        if (segment.isReadOnly() && rights.contains(Access.LOCAL_WRITE)) {
            throw new IllegalArgumentException("a read-only segment cannot be registered with " + rights);
        }
        SoftwareMemory memory;
        synchronized (lock) {
            memory = new SoftwareMemory(this, owner, group, newStag(), segment, rights);
            table.add(memory);
        }
        registeredBytes.addAndGet(segment.byteSize());
        return memory;
    }

    private int newStag() {
        if (table.size() == MAX_REGIONS) {
            throw new TableFullException();
        }
        int stag;
        do {
            stag = (int) Secrets.nextLong();
            // A program that has forgotten to set the key sends 0.
        } while (stag == 0 || table.find(stag) != null);
        return stag;
    }

    /**
     * Called when nothing uses the memory any more.
     *
     * @param memory of this domain
     */
    public void forget(SoftwareMemory memory) {
        synchronized (lock) {
            table.remove(memory);
        }
        registeredBytes.addAndGet(-memory.lengthBytes());
    }

    /**
     * What an STag stands for.
     *
     * @param stag of any origin
     * @return null if nothing is registered under it
     */
    public @Nullable SoftwareMemory find(int stag) {
        return table.find(stag);
    }

    @Override
    public long registeredBytes() {
        return registeredBytes.get();
    }

    /** The largest number of regions. */
    private static final class TableFullException extends RdmaException {
        @java.io.Serial
        private static final long serialVersionUID = 1L;

        TableFullException() {
            super(MAX_REGIONS
                    + " regions are registered, which is the limit: register larger regions, and close those no "
                    + "longer needed");
        }
    }
}
