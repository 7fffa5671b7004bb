package org.verbena.verbs.work;

import org.verbena.verbs.ffm.NativeConstant;

/**
 * The operations of {@code ibv_wr_*}, which a queue pair is created for. {@code WorkRequestBuilder} builds SEND,
 * RDMA_WRITE, FLUSH and ATOMIC_WRITE; a {@code SendQueue} posts all but the last two.
 *
 * <p>Source: ibv_create_qp_ex(3)
 */
public enum SendOperation implements NativeConstant {
    /** Writes. */
    RDMA_WRITE(1),
    /** Writes with immediate data. */
    RDMA_WRITE_WITH_IMM(2),
    /** Sends. */
    SEND(4),
    /** Sends with immediate data. */
    SEND_WITH_IMM(8),
    /** Reads. */
    RDMA_READ(16),
    /** Compare-and-swap. */
    ATOMIC_CMP_AND_SWP(32),
    /** Fetch-and-add. */
    ATOMIC_FETCH_AND_ADD(64),
    /** Invalidation of local keys. */
    LOCAL_INV(128),
    /** Binding of memory windows. */
    BIND_MW(0x100),
    /** Sends that invalidate a key of the peer. */
    SEND_WITH_INV(0x200),
    /** Segmented sends. */
    TSO(0x400),
    /** Flushes; rdma-core 45 or newer. */
    FLUSH(0x800),
    /** Atomic writes of 8 bytes. */
    ATOMIC_WRITE(0x1000);

    private final int value;

    SendOperation(int value) {
        this.value = value;
    }

    @Override
    public int value() {
        return value;
    }

    @Override
    public String cName() {
        return "IBV_QP_EX_WITH_" + name();
    }
}
