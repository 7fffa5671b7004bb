package org.verbena.verbs.queue;

import org.verbena.verbs.ffm.NativeConstant;

/**
 * The attributes of a queue pair that can be modified or queried.
 *
 * <p>Source: ibv_modify_qp(3)
 */
public enum QueuePairAttribute implements NativeConstant {
    /** The state to go to. */
    STATE(1 << 0),
    /** The current state, if C cannot know it. */
    CUR_STATE(1 << 1),
    /** Whether SQ_DRAINED is reported. */
    EN_SQD_ASYNC_NOTIFY(1 << 2),
    /** The peer's rights. */
    ACCESS_FLAGS(1 << 3),
    /** The index of its P_Key. */
    PKEY_INDEX(1 << 4),
    /** Its port. */
    PORT(1 << 5),
    /** Its Q_Key; datagrams only. */
    QKEY(1 << 6),
    /** The address of its peer. */
    AV(1 << 7),
    /** The packet size. */
    PATH_MTU(1 << 8),
    /** How long to wait for an acknowledgement. */
    TIMEOUT(1 << 9),
    /** The number of retries. */
    RETRY_CNT(1 << 10),
    /** The number of retries when the peer has no receive. */
    RNR_RETRY(1 << 11),
    /** The first packet number to expect. */
    RQ_PSN(1 << 12),
    /** Reads and atomics outstanding as initiator. */
    MAX_QP_RD_ATOMIC(1 << 13),
    /** The alternate path to the peer. */
    ALT_PATH(1 << 14),
    /** How long the peer should wait when no receive is posted. */
    MIN_RNR_TIMER(1 << 15),
    /** The first packet number to send. */
    SQ_PSN(1 << 16),
    /** Reads and atomics outstanding as target. */
    MAX_DEST_RD_ATOMIC(1 << 17),
    /** The state of path migration. */
    PATH_MIG_STATE(1 << 18),
    /** Its sizes. */
    CAP(1 << 19),
    /** The peer's queue pair. */
    DEST_QPN(1 << 20),
    /** A rate limit; raw packets only. */
    RATE_LIMIT(1 << 25);

    private final int value;

    QueuePairAttribute(int value) {
        this.value = value;
    }

    @Override
    public int value() {
        return value;
    }

    @Override
    public String cName() {
        return "IBV_QP_" + name();
    }
}
