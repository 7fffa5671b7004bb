package org.verbena.verbs.work;

import org.verbena.verbs.ffm.NativeConstant;

/**
 * The operation of a work request of a send queue.
 *
 * <p>Source: ibv_post_send(3)
 */
public enum WorkRequestOpcode implements NativeConstant {
    /** Writes the peer's memory. */
    RDMA_WRITE(0),
    /** Writes the peer's memory, consumes one of its receives and carries 32 bits. */
    RDMA_WRITE_WITH_IMM(1),
    /** Fills a receive of the peer. */
    SEND(2),
    /** A send with 32 bits of immediate data. */
    SEND_WITH_IMM(3),
    /** Reads the peer's memory. */
    RDMA_READ(4),
    /** Swaps 8 bytes if they equal what is expected. */
    ATOMIC_CMP_AND_SWP(5),
    /** Adds to 8 bytes. */
    ATOMIC_FETCH_AND_ADD(6),
    /** Invalidates a local key: unbinds a type 2 memory window. */
    LOCAL_INV(7),
    /** Binds a type 2 memory window. */
    BIND_MW(8),
    /** A send that invalidates a key of the peer. */
    SEND_WITH_INV(9),
    /** A segmented raw packet or IPoIB send. */
    TSO(10),
    /** The device's own. */
    DRIVER1(11),
    /** Makes earlier writes visible or persistent at the peer; rdma-core 45 or newer. */
    FLUSH(14),
    /** Writes 8 bytes of the peer's memory at once. */
    ATOMIC_WRITE(15);

    private final int value;

    WorkRequestOpcode(int value) {
        this.value = value;
    }

    @Override
    public int value() {
        return value;
    }

    @Override
    public String cName() {
        return "IBV_WR_" + name();
    }

    /**
     * The constant of a C value.
     *
     * @param value as C has it
     * @return the constant
     * @throws IllegalArgumentException a value that has none
     */
    public static WorkRequestOpcode of(int value) {
        for (WorkRequestOpcode constant : values()) {
            if (constant.value == value) {
                return constant;
            }
        }
        throw new IllegalArgumentException("no IBV_WR_* has the value " + value);
    }
}
