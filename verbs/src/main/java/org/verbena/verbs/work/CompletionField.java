package org.verbena.verbs.work;

import org.verbena.verbs.ffm.NativeConstant;

/**
 * The fields that a {@code CompletionReader} can read; requested when its queue is created.
 *
 * <p>Source: ibv_create_cq_ex(3)
 */
public enum CompletionField implements NativeConstant {
    /** The length. */
    BYTE_LEN(1),
    /** Immediate data. */
    IMM(2),
    /** The local queue pair. */
    QP_NUM(4),
    /** The datagram's source queue pair. */
    SRC_QP(8),
    /** The datagram's source LID. */
    SLID(16),
    /** The datagram's service level. */
    SL(32),
    /** Which of the LIDs a datagram came to. */
    DLID_PATH_BITS(64),
    /** When it completed, by the device's clock. */
    COMPLETION_TIMESTAMP(128),
    /** The VLAN of a raw packet. */
    CVLAN(0x100),
    /** The tag of the steering rule that matched. */
    FLOW_TAG(0x200),
    /** The tag of a tagged message. */
    TM_INFO(0x400),
    /** When it completed, in nanoseconds of wall-clock time. */
    COMPLETION_TIMESTAMP_WALLCLOCK(0x800);

    private final int value;

    CompletionField(int value) {
        this.value = value;
    }

    @Override
    public int value() {
        return value;
    }

    @Override
    public String cName() {
        return "IBV_WC_EX_WITH_" + name();
    }
}
