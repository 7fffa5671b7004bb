package org.verbena.verbs;

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
    MTU_4096(5);

    private final int value;

    Mtu(int value) {
        this.value = value;
    }

    /**
     * The constant of a C value.
     *
     * @param value as C has it
     * @return the constant
     * @throws IllegalArgumentException a value that has none
     */
    public static Mtu of(int value) {
        if (value < 1 || value > values().length) {
            throw new IllegalArgumentException("no IBV_MTU_* has the value " + value);
        }
        return values()[value - 1];
    }

    /**
     * How much it is.
     *
     * @return bytes
     */
    public int bytes() {
        return 128 << value;
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
