package org.verbena.verbs.device;

import org.verbena.verbs.ffm.NativeConstant;

/**
 * The largest payload of one packet.
 *
 * <p>Source: ibv_query_port(3)
 */
public enum Mtu implements NativeConstant {
    /** 256 bytes. */
    MTU_256(1),
    /** 512 bytes. */
    MTU_512(2),
    /** 1024 bytes. */
    MTU_1024(3),
    /** 2048 bytes. */
    MTU_2048(4),
    /** 4096 bytes. */
    MTU_4096(5),
    /** Unknown to this version; some drivers report 0 while a port is down. */
    UNKNOWN(-1);

    private final int value;

    Mtu(int value) {
        this.value = value;
    }

    /**
     * The constant of a C value.
     *
     * @param value as C has it
     * @return the constant; UNKNOWN for values that have none
     */
    public static Mtu of(int value) {
        for (Mtu mtu : values()) {
            if (mtu.value == value) {
                return mtu;
            }
        }
        return UNKNOWN;
    }

    /**
     * The MTU of so many bytes.
     *
     * @param bytes 256, 512, 1024, 2048 or 4096
     * @return the constant
     * @throws IllegalArgumentException no packets have so many bytes
     */
    public static Mtu ofBytes(int bytes) {
        for (Mtu mtu : values()) {
            if (mtu != UNKNOWN && mtu.bytes() == bytes) {
                return mtu;
            }
        }
        throw new IllegalArgumentException("an MTU is 256, 512, 1024, 2048 or 4096 bytes, not " + bytes);
    }

    /**
     * The MTU in bytes.
     *
     * @return bytes; 0 for UNKNOWN
     */
    public int bytes() {
        return this == UNKNOWN ? 0 : 128 << value;
    }

    @Override
    public int value() {
        return value;
    }

    @Override
    public String cName() {
        return "IBV_" + name();
    }
}
