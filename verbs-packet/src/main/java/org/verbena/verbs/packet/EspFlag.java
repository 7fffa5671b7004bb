package org.verbena.verbs.packet;

import org.verbena.verbs.ffm.NativeConstant;

/**
 * How the device treats ESP packets. Without any flag, the program writes and reads ESP headers, in tunnel mode, and
 * the device decrypts.
 *
 * <p>Source: ibv_flow_action_esp(3)
 */
public enum EspFlag implements NativeConstant {
    /** The device writes and takes off ESP headers and trailers, and refuses repeated packets. */
    FULL_OFFLOAD(1),
    /** Transport mode; tunnel mode without. */
    TRANSPORT(2),
    /** The device encrypts; decrypts without. */
    ENCRYPT(4),
    /** The extended sequence number is in the second half of its window. */
    ESN_NEW_WINDOW(8);

    private final int value;

    EspFlag(int value) {
        this.value = value;
    }

    @Override
    public int value() {
        return value;
    }

    @Override
    public String cName() {
        return "IBV_FLOW_ACTION_ESP_FLAGS_" + name();
    }
}
