package org.verbena.verbs.device;

import org.verbena.verbs.ffm.NativeConstant;

/**
 * The type of an asynchronous event.
 *
 * <p>Source: ibv_get_async_event(3)
 */
public enum AsyncEventType implements NativeConstant {
    /** A completion queue is in error: it overflowed. Its queue pairs are lost; make it larger. */
    CQ_ERR(0),
    /** A queue pair is in error, and the cause could not be reported as a completion. */
    QP_FATAL(1),
    /** The peer sent an invalid request; the queue pair is in error. */
    QP_REQ_ERR(2),
    /** The peer asked for memory it may not access; the queue pair is in error. */
    QP_ACCESS_ERR(3),
    /** A message arrived on a queue pair that is not yet RTS. */
    COMM_EST(4),
    /** The send queue has drained: SQD is complete. */
    SQ_DRAINED(5),
    /** A connection moved to its alternate path. */
    PATH_MIG(6),
    /** A connection failed to move to its alternate path. */
    PATH_MIG_ERR(7),
    /** The device failed: close everything on it. */
    DEVICE_FATAL(8),
    /** A port came up. */
    PORT_ACTIVE(9),
    /** A port went down. */
    PORT_ERR(10),
    /** The local identifier of a port changed. */
    LID_CHANGE(11),
    /** The P_Key table of a port changed. */
    PKEY_CHANGE(12),
    /** Another subnet manager took over. */
    SM_CHANGE(13),
    /** A shared receive queue failed. */
    SRQ_ERR(14),
    /** Fewer receives are left in a shared receive queue than its limit; the limit is disarmed. */
    SRQ_LIMIT_REACHED(15),
    /** A queue pair in error took its last receive from the shared queue: it can be destroyed. */
    QP_LAST_WQE_REACHED(16),
    /** The subnet manager asks for subscriptions to be renewed. */
    CLIENT_REREGISTER(17),
    /** The GID table of a port changed: addresses came or went. */
    GID_CHANGE(18),
    /** A receive work queue failed. */
    WQ_FATAL(19),
    /** A port has another speed. */
    DEVICE_SPEED_CHANGE(20),
    /** An event this version does not know. */
    UNKNOWN(-1);

    private final int value;

    AsyncEventType(int value) {
        this.value = value;
    }

    @Override
    public int value() {
        return value;
    }

    @Override
    public String cName() {
        return "IBV_EVENT_" + name();
    }

    /**
     * The constant of a C value.
     *
     * @param value as C has it
     * @return the constant; UNKNOWN for values that have none
     */
    public static AsyncEventType of(int value) {
        return NativeConstant.of(values(), value, UNKNOWN);
    }
}
