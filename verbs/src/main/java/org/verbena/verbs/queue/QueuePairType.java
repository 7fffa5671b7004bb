package org.verbena.verbs.queue;

import org.verbena.verbs.ffm.NativeConstant;
import org.verbena.verbs.work.WorkRequestOpcode;

/**
 * The transport service of a queue pair.
 *
 * <p>Source: ibv_create_qp(3)
 */
public enum QueuePairType implements NativeConstant {
    /** Reliable connection: ordered, acknowledged, with reads and atomics. */
    RC(2),
    /** Unreliable connection: sends and writes; losses are not reported. */
    UC(3),
    /** Unreliable datagram: sends of up to one MTU to any address handle, and multicast. */
    UD(4),
    /** Whole Ethernet frames; needs CAP_NET_RAW. */
    RAW_PACKET(8),
    /** Extended reliable connection, sending side. */
    XRC_SEND(9),
    /** Extended reliable connection, receiving side. */
    XRC_RECV(10),
    /** A type of the device's own. */
    DRIVER(255);

    private final int value;

    QueuePairType(int value) {
        this.value = value;
    }

    @Override
    public int value() {
        return value;
    }

    @Override
    public String cName() {
        return "IBV_QPT_" + name();
    }

    /**
     * The constant of a C value.
     *
     * @param value as C has it
     * @return the constant
     * @throws IllegalArgumentException a value that has none
     */
    public static QueuePairType of(int value) {
        for (QueuePairType constant : values()) {
            if (constant.value == value) {
                return constant;
            }
        }
        throw new IllegalArgumentException("no IBV_QPT_* has the value " + value);
    }

    /**
     * Whether the transport service has an operation. A device may still lack it.
     *
     * <p>Source: ibv_post_send(3)
     *
     * @param opcode of a work request
     * @return true if work requests with it may be posted; of {@link #DRIVER} nothing is known, so always true
     */
    public boolean carries(WorkRequestOpcode opcode) {
        return switch (this) {
            case DRIVER -> true;
            case XRC_RECV -> false;
            case RC, XRC_SEND -> opcode != WorkRequestOpcode.TSO;
            case UC ->
                switch (opcode) {
                    case SEND, SEND_WITH_IMM, SEND_WITH_INV, RDMA_WRITE, RDMA_WRITE_WITH_IMM, LOCAL_INV, BIND_MW ->
                        true;
                    default -> false;
                };
            case UD ->
                opcode == WorkRequestOpcode.SEND
                        || opcode == WorkRequestOpcode.SEND_WITH_IMM
                        || opcode == WorkRequestOpcode.TSO;
            case RAW_PACKET -> opcode == WorkRequestOpcode.SEND || opcode == WorkRequestOpcode.TSO;
        };
    }

    /**
     * Whether a device's mask of types has it, as in {@code ExtendedDeviceAttributes.tsoTypes}.
     *
     * @param types one bit for each C value
     * @return true if its bit is set
     */
    public boolean isIn(int types) {
        return value < Integer.SIZE && (types & 1 << value) != 0;
    }
}
