package org.verbena.verbs.packet;

import org.verbena.verbs.ffm.NativeConstant;

/**
 * Special behaviour of a {@link FlowRule}.
 *
 * <p>Source: ibv_create_flow(3)
 */
public enum FlowFlag implements NativeConstant {
    /** Packets go on to the rules that come after it; NORMAL rules only. */
    DONT_TRAP(2),
    /** It is for packets that are sent; the queue pair only names the device. */
    EGRESS(4);

    private final int value;

    FlowFlag(int value) {
        this.value = value;
    }

    @Override
    public int value() {
        return value;
    }

    @Override
    public String cName() {
        return "IBV_FLOW_ATTR_FLAGS_" + name();
    }
}
