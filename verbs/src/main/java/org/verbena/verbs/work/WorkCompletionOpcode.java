package org.verbena.verbs.work;

import org.verbena.verbs.ffm.NativeConstant;

/**
 * The operation that completed. Valid for successful completions only.
 *
 * <p>Source: ibv_poll_cq(3)
 */
public enum WorkCompletionOpcode implements NativeConstant {
    /** A send, with or without immediate data or invalidation. */
    SEND(0),
    /** An RDMA write, with or without immediate data. */
    RDMA_WRITE(1),
    /** An RDMA read. */
    RDMA_READ(2),
    /** A compare-and-swap. */
    COMP_SWAP(3),
    /** A fetch-and-add. */
    FETCH_ADD(4),
    /** A memory window was bound. */
    BIND_MW(5),
    /** A local key was invalidated. */
    LOCAL_INV(6),
    /** A segmented send. */
    TSO(7),
    /** A flush; rdma-core 45 or newer. */
    FLUSH(8),
    /** An atomic write. */
    ATOMIC_WRITE(9),
    /** A receive. */
    RECV(128),
    /** A receive consumed by an RDMA write with immediate data: no bytes went into its buffers. */
    RECV_RDMA_WITH_IMM(129),
    /** Tag matching: a tag was added. */
    TM_ADD(130),
    /** Tag matching: a tag was removed. */
    TM_DEL(131),
    /** Tag matching: counters were synchronised. */
    TM_SYNC(132),
    /** Tag matching: a tagged message arrived. */
    TM_RECV(133),
    /** Tag matching: an untagged message arrived. */
    TM_NO_TAG(134),
    /** The device's own. */
    DRIVER1(135),
    /** The device's own. */
    DRIVER2(136),
    /** The device's own. */
    DRIVER3(137),
    /** One this version does not know. */
    UNKNOWN(-1);

    private final int value;

    WorkCompletionOpcode(int value) {
        this.value = value;
    }

    @Override
    public int value() {
        return value;
    }

    @Override
    public String cName() {
        return "IBV_WC_" + name();
    }

    /**
     * The constant of a C value.
     *
     * @param value as C has it
     * @return the constant; UNKNOWN for values that have none
     */
    public static WorkCompletionOpcode of(int value) {
        for (WorkCompletionOpcode constant : values()) {
            if (constant.value == value) {
                return constant;
            }
        }
        return UNKNOWN;
    }
}
