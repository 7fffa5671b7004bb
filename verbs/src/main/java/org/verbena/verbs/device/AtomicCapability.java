package org.verbena.verbs.device;

import org.verbena.verbs.ffm.NativeConstant;

/**
 * The scope within which atomics are atomic.
 *
 * <p>Source: ibv_query_device(3)
 */
public enum AtomicCapability implements NativeConstant {
    /** There are no atomics. */
    NONE(0),
    /** Among the queue pairs of this device. */
    HCA(1),
    /** Also with the processors' own atomics. */
    GLOB(2),
    /** A value this version does not know. */
    UNKNOWN(-1);

    private final int value;

    AtomicCapability(int value) {
        this.value = value;
    }

    @Override
    public int value() {
        return value;
    }

    @Override
    public String cName() {
        return "IBV_ATOMIC_" + name();
    }

    /**
     * The constant of a C value.
     *
     * @param value as C has it
     * @return the constant; UNKNOWN for values that have none
     */
    public static AtomicCapability of(int value) {
        return NativeConstant.of(values(), value, UNKNOWN);
    }
}
