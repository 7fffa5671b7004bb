package org.verbena.verbs.packet;

import org.verbena.verbs.ffm.NativeConstant;

/**
 * The unit that a counter counts.
 *
 * <p>Source: ibv_attach_counters_point_flow(3)
 */
public enum CounterKind implements NativeConstant {
    /** Packets. */
    PACKETS(0),
    /** Bytes. */
    BYTES(1);

    private final int value;

    CounterKind(int value) {
        this.value = value;
    }

    @Override
    public int value() {
        return value;
    }

    @Override
    public String cName() {
        return "IBV_COUNTER_" + name();
    }
}
