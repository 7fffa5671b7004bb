package org.verbena.verbs.address;

import org.verbena.verbs.ffm.NativeConstant;

/**
 * The format of packets to and from a GID.
 *
 * <p>Source: ibv_query_gid_ex(3)
 */
public enum GidType implements NativeConstant {
    /** InfiniBand. */
    IB(0),
    /** RoCE version 1: directly over Ethernet, within one broadcast domain. */
    ROCE_V1(1),
    /** RoCE version 2: over UDP, routable. */
    ROCE_V2(2),
    /** A type this version does not know. */
    UNKNOWN(-1);

    private final int value;

    GidType(int value) {
        this.value = value;
    }

    @Override
    public int value() {
        return value;
    }

    @Override
    public String cName() {
        return "IBV_GID_TYPE_" + name();
    }

    /**
     * The constant of a C value.
     *
     * @param value as C has it
     * @return the constant; UNKNOWN for values that have none
     */
    public static GidType of(int value) {
        return NativeConstant.of(values(), value, UNKNOWN);
    }
}
