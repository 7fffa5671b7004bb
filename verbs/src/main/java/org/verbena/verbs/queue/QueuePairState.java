package org.verbena.verbs.queue;

import org.verbena.verbs.ffm.NativeConstant;

/**
 * The state of a queue pair. {@code QueuePair} has a drawing of the transitions.
 *
 * <p>Source: ibv_modify_qp(3)
 */
public enum QueuePairState implements NativeConstant {
    /** New or reset: nothing may be posted. */
    RESET(0),
    /** Initialised: receives may be posted, nothing arrives yet. */
    INIT(1),
    /** Ready to receive. */
    RTR(2),
    /** Ready to send: fully up. */
    RTS(3),
    /** The send queue is drained or draining: work in progress completes, posted work waits. */
    SQD(4),
    /** A send failed on an unreliable queue pair; receiving goes on. */
    SQE(5),
    /** In error: everything posted completes with WR_FLUSH_ERR. */
    ERR(6),
    /** The state is unknown. */
    UNKNOWN(7);

    private final int value;

    QueuePairState(int value) {
        this.value = value;
    }

    @Override
    public int value() {
        return value;
    }

    @Override
    public String cName() {
        return "IBV_QPS_" + name();
    }

    /**
     * The constant of a C value.
     *
     * @param value as C has it
     * @return the constant; UNKNOWN for values that have none
     */
    public static QueuePairState of(int value) {
        return NativeConstant.of(values(), value, UNKNOWN);
    }
}
