package org.verbena.verbs.device;

import org.verbena.verbs.ffm.NativeConstant;

/**
 * The link layer of a port.
 *
 * <p>Source: ibv_query_port(3)
 */
public enum LinkLayer implements NativeConstant {
    /** InfiniBand on adapters older than the field. */
    UNSPECIFIED(0),
    /** An InfiniBand fabric. */
    INFINIBAND(1),
    /** Ethernet: RoCE or iWARP. */
    ETHERNET(2),
    /** A link layer this version does not know. */
    UNKNOWN(-1);

    private final int value;

    LinkLayer(int value) {
        this.value = value;
    }

    @Override
    public int value() {
        return value;
    }

    @Override
    public String cName() {
        return "IBV_LINK_LAYER_" + name();
    }

    /**
     * The constant of a C value.
     *
     * @param value as C has it
     * @return the constant; UNKNOWN for values that have none
     */
    public static LinkLayer of(int value) {
        return NativeConstant.of(values(), value, UNKNOWN);
    }
}
