package org.verbena.verbs.device;

import org.verbena.verbs.ffm.NativeConstant;
import org.verbena.verbs.memory.AccessFlag;

/**
 * What a device can do with memory that is registered {@link AccessFlag#ON_DEMAND}.
 *
 * <p>Source: ibv_query_device_ex(3)
 */
public enum OnDemandOperation implements NativeConstant {
    /** Send from it. */
    SEND(1),
    /** Receive into it. */
    RECV(2),
    /** Let the peer write it. */
    WRITE(4),
    /** Let the peer read it. */
    READ(8),
    /** Let the peer perform atomics on it. */
    ATOMIC(16),
    /** Receive into it by a shared receive queue. */
    SRQ_RECV(32);

    private final int value;

    OnDemandOperation(int value) {
        this.value = value;
    }

    @Override
    public int value() {
        return value;
    }

    @Override
    public String cName() {
        return "IBV_ODP_SUPPORT_" + name();
    }
}
