package org.verbena.transport.software;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;

/**
 * Regions of all kinds for a fuzz test, with guards between them: some that a peer may use, and some that it may not,
 * which are guards themselves.
 */
public final class GuardedRegions implements AutoCloseable {
    public static final int TABLE_BYTES = 1024;
    private static final byte GUARD = 0x5b;
    private static final int GUARD_BYTES = 64;

    private final Arena arena = Arena.ofShared();
    private final List<MemorySegment> guards = new ArrayList<>();
    private final MemorySegment memory = arena.allocate(64 * 1024, 64).fill(GUARD);
    private final MemorySegment untouched = arena.allocate(TABLE_BYTES).fill(GUARD);
    private long used;

    public final SoftwareDomain domain = new SoftwareDomain();
    public final ConnectionMemory own = new ConnectionMemory(domain);

    /** For every peer, with all rights. */
    public final RegisteredMemory table = domain.register(sge(TABLE_BYTES), Set.of(Access.values()));

    /** For this peer alone; it may invalidate the key. */
    public RegisteredMemory lent = own.register(sge(TABLE_BYTES), Access.REMOTE_WRITE, Access.REMOTE_READ);

    public final RegisteredMemory anothers = new ConnectionMemory(domain).register(sge(TABLE_BYTES), Access.values());
    public final RegisteredMemory secret = domain.register(sge(TABLE_BYTES), Set.of(Access.LOCAL_WRITE));
    public final RegisteredMemory closed = domain.register(sge(TABLE_BYTES), Set.of(Access.values()));
    public final RegisteredMemory receives;
    public final RegisteredMemory sinks;

    /**
     * Registers them.
     *
     * @param receiveBytes of the region to receive into
     * @param sinkBytes of the region to read into
     */
    public GuardedRegions(int receiveBytes, int sinkBytes) {
        closed.close();
        receives = domain.register(sge(receiveBytes), Set.of(Access.LOCAL_WRITE));
        sinks = domain.register(sge(sinkBytes), Set.of(Access.LOCAL_WRITE));
        sge(0);
        guards.add(anothers.segment());
        guards.add(secret.segment());
        guards.add(closed.segment());
    }

    private MemorySegment sge(long bytes) {
        guards.add(memory.asSlice(used, GUARD_BYTES));
        MemorySegment made = memory.asSlice(used + GUARD_BYTES, bytes);
        used += GUARD_BYTES + (bytes + 63 & ~63L);
        return made;
    }

    /** Whether the peer has not invalidated the key that it was lent. */
    public boolean isLentOpen() {
        return ((SoftwareMemory) lent).isOpenToPeers();
    }

    /** Lends the memory again, with a new key. */
    public void lendAgain() {
        lent.close();
        lent = own.register(lent.segment(), Access.REMOTE_WRITE, Access.REMOTE_READ);
    }

    /** Throws if a byte was touched that the peer may not touch. */
    public void check() {
        for (MemorySegment guard : guards) {
            long touched = MemorySegment.mismatch(guard, 0, guard.byteSize(), untouched, 0, guard.byteSize());
            if (touched >= 0) {
                throw new AssertionError(
                        "byte " + touched + " behind 0x" + Long.toHexString(guard.address()) + " was touched");
            }
        }
    }

    @Override
    public void close() {
        for (RegisteredMemory region : List.of(table, lent, anothers, secret, receives, sinks)) {
            region.close();
        }
        assertThat(domain.registeredBytes()).as("registered bytes at the end").isZero();
        arena.close();
    }
}
