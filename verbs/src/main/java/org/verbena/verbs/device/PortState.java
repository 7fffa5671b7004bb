package org.verbena.verbs.device;

import org.verbena.verbs.ffm.NativeConstant;

/**
 * The logical state of a port.
 *
 * <p>Source: ibv_query_port(3)
 */
public enum PortState implements NativeConstant {
    /** Reserved: no change. */
    NOP(0),
    /** The link is down. */
    DOWN(1),
    /** The link is up, the subnet manager has not configured it. */
    INIT(2),
    /** Configured, not yet in use. */
    ARMED(3),
    /** In use. */
    ACTIVE(4),
    /** Was active, the link has trouble. */
    ACTIVE_DEFER(5),
    /** A state this version does not know. */
    UNKNOWN(-1);

    private final int value;

    PortState(int value) {
        this.value = value;
    }

    @Override
    public int value() {
        return value;
    }

    @Override
    public String cName() {
        return "IBV_PORT_" + name();
    }

    /**
     * The constant of a C value.
     *
     * @param value as C has it
     * @return the constant; UNKNOWN for values that have none
     */
    public static PortState of(int value) {
        return NativeConstant.of(values(), value, UNKNOWN);
    }
}
