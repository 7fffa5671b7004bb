package org.verbena.verbs.queue;

import org.verbena.verbs.ffm.NativeConstant;

/**
 * Automatic path migration.
 *
 * <p>Source: ibv_modify_qp(3)
 */
public enum MigrationState implements NativeConstant {
    /** On the path it was given, or moved to the alternate. */
    MIGRATED(0),
    /** To be armed together with the peer. */
    REARM(1),
    /** Ready to move to the alternate path. */
    ARMED(2);

    private final int value;

    MigrationState(int value) {
        this.value = value;
    }

    @Override
    public int value() {
        return value;
    }

    @Override
    public String cName() {
        return "IBV_MIG_" + name();
    }

    /**
     * The constant of a C value.
     *
     * @param value as C has it
     * @return the constant
     * @throws IllegalArgumentException a value that has none
     */
    public static MigrationState of(int value) {
        for (MigrationState constant : values()) {
            if (constant.value == value) {
                return constant;
            }
        }
        throw new IllegalArgumentException("no IBV_MIG_* has the value " + value);
    }
}
