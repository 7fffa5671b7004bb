package org.verbena.verbs.memory;

import org.verbena.verbs.ffm.NativeConstant;

/**
 * Whether a process that uses libibverbs may fork.
 *
 * <p>Source: ibv_is_fork_initialized(3)
 */
public enum ForkStatus implements NativeConstant {
    /** It may not: {@code Verbs.forkInit()} was not called. */
    DISABLED(0),
    /** It may: registered memory is kept from children. */
    ENABLED(1),
    /** It may: the kernel copies registered memory for children. */
    UNNEEDED(2);

    private final int value;

    ForkStatus(int value) {
        this.value = value;
    }

    @Override
    public int value() {
        return value;
    }

    @Override
    public String cName() {
        return "IBV_FORK_" + name();
    }

    /**
     * The constant of a C value.
     *
     * @param value as C has it
     * @return the constant
     * @throws IllegalArgumentException a value that has none
     */
    public static ForkStatus of(int value) {
        for (ForkStatus constant : values()) {
            if (constant.value == value) {
                return constant;
            }
        }
        throw new IllegalArgumentException("no IBV_FORK_* has the value " + value);
    }
}
