package org.verbena.verbs.packet;

import org.verbena.verbs.ffm.NativeConstant;

/**
 * The packets that a {@link FlowRule} applies to.
 *
 * <p>Source: ibv_create_flow(3)
 */
public enum FlowRuleType implements NativeConstant {
    /** The packets that its parts match. */
    NORMAL(0),
    /** All Ethernet frames that no other rule steers. */
    ALL_DEFAULT(1),
    /** All multicast Ethernet frames that no other rule steers. */
    MC_DEFAULT(2),
    /** A copy of all that the port receives. */
    SNIFFER(3);

    private final int value;

    FlowRuleType(int value) {
        this.value = value;
    }

    @Override
    public int value() {
        return value;
    }

    @Override
    public String cName() {
        return "IBV_FLOW_ATTR_" + name();
    }
}
