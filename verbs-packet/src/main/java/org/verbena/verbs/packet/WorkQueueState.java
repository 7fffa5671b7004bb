package org.verbena.verbs.packet;

import org.verbena.verbs.ffm.NativeConstant;

/**
 * The states of a {@link ReceiveWorkQueue}.
 *
 * <p>Source: ibv_modify_wq(3)
 */
public enum WorkQueueState implements NativeConstant {
    /** Receives can be posted and are not used. */
    RESET(0),
    /** Packets arrive. */
    RDY(1),
    /** Receives are flushed. */
    ERR(2),
    /** Not reported by the device. */
    UNKNOWN(3);

    private final int value;

    WorkQueueState(int value) {
        this.value = value;
    }

    @Override
    public int value() {
        return value;
    }

    @Override
    public String cName() {
        return "IBV_WQS_" + name();
    }

    /**
     * The constant of a C value.
     *
     * @param value as C has it
     * @return the constant; UNKNOWN for values that have none
     */
    public static WorkQueueState of(int value) {
        return NativeConstant.of(values(), value, UNKNOWN);
    }
}
