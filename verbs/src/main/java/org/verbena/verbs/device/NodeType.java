package org.verbena.verbs.device;

import org.verbena.verbs.ffm.NativeConstant;

/**
 * The kind of node that a device is.
 *
 * <p>Source: ibv_get_device_list(3)
 */
public enum NodeType implements NativeConstant {
    /** Not known. */
    UNKNOWN(-1),
    /** An InfiniBand or RoCE channel adapter. */
    CA(1),
    /** A switch. */
    SWITCH(2),
    /** A router. */
    ROUTER(3),
    /** An iWARP adapter. */
    RNIC(4),
    /** A Cisco usNIC. */
    USNIC(5),
    /** A Cisco usNIC over UDP. */
    USNIC_UDP(6),
    /** A device of its own kind, such as EFA. */
    UNSPECIFIED(7);

    private final int value;

    NodeType(int value) {
        this.value = value;
    }

    @Override
    public int value() {
        return value;
    }

    @Override
    public String cName() {
        return "IBV_NODE_" + name();
    }

    /**
     * The constant of a C value.
     *
     * @param value as C has it
     * @return the constant; UNKNOWN for values that have none
     */
    public static NodeType of(int value) {
        return NativeConstant.of(values(), value, UNKNOWN);
    }
}
