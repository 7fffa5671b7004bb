package org.verbena.verbs.device;

import org.verbena.verbs.ffm.NativeConstant;

/**
 * The transport that a device speaks.
 *
 * <p>Source: ibv_get_device_list(3)
 */
public enum TransportType implements NativeConstant {
    /** Not known. */
    UNKNOWN(-1),
    /** InfiniBand, natively or over Ethernet (RoCE). */
    IB(0),
    /** iWARP. */
    IWARP(1),
    /** usNIC. */
    USNIC(2),
    /** usNIC over UDP. */
    USNIC_UDP(3),
    /** Its own. */
    UNSPECIFIED(4);

    private final int value;

    TransportType(int value) {
        this.value = value;
    }

    @Override
    public int value() {
        return value;
    }

    @Override
    public String cName() {
        return "IBV_TRANSPORT_" + name();
    }

    /**
     * The constant of a C value.
     *
     * @param value as C has it
     * @return the constant; UNKNOWN for values that have none
     */
    public static TransportType of(int value) {
        return NativeConstant.of(values(), value, UNKNOWN);
    }
}
