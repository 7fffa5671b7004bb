package org.verbena.verbs.memory;

import org.verbena.verbs.ffm.NativeConstant;

/**
 * Access rights of a memory region, of a memory window or, for the peer, through a queue pair. Local reads are always
 * allowed.
 *
 * <p>Source: ibv_reg_mr(3)
 */
public enum AccessFlag implements NativeConstant {
    /** Receives, RDMA reads and atomics of this side may write it. */
    LOCAL_WRITE(1),
    /** The peer may write it; needs {@link #LOCAL_WRITE}. */
    REMOTE_WRITE(2),
    /** The peer may read it. */
    REMOTE_READ(4),
    /** The peer may perform atomics on it; needs {@link #LOCAL_WRITE}. */
    REMOTE_ATOMIC(8),
    /** A memory window may be bound to it. */
    MW_BIND(16),
    /** Remote addresses count from the start of the region, not from its virtual address. */
    ZERO_BASED(32),
    /** Pages are not pinned: the adapter faults them in (on-demand paging). Devices without that refuse. */
    ON_DEMAND(64),
    /** Backed by huge pages throughout; only together with {@link #ON_DEMAND}. */
    HUGETLB(128),
    /** The peer may flush it to where every adapter sees it; rdma-core 45 or newer. */
    FLUSH_GLOBAL(0x100),
    /** The peer may flush it to persistent memory; rdma-core 45 or newer. */
    FLUSH_PERSISTENT(0x200),
    /** The system may reorder accesses by the adapter; a hint that devices may ignore. */
    RELAXED_ORDERING(0x100000);

    private final int value;

    AccessFlag(int value) {
        this.value = value;
    }

    @Override
    public int value() {
        return value;
    }

    @Override
    public String cName() {
        return "IBV_ACCESS_" + name();
    }
}
