package org.verbena.verbs.device;

import org.verbena.verbs.ffm.NativeConstant;

/**
 * Optional features of a device.
 *
 * <p>Source: ibv_query_device(3)
 */
public enum DeviceCapability implements NativeConstant {
    /** The depth of queues can be changed with modify. */
    RESIZE_MAX_WR(1 << 0),
    /** Wrong P_Keys are counted. */
    BAD_PKEY_CNTR(1 << 1),
    /** Wrong Q_Keys are counted. */
    BAD_QKEY_CNTR(1 << 2),
    /** Raw packet multicast. */
    RAW_MULTI(1 << 3),
    /** Automatic path migration. */
    AUTO_PATH_MIG(1 << 4),
    /** The port can be changed from SQD to SQD. */
    CHANGE_PHY_PORT(1 << 5),
    /** The port of an address handle must be that of the queue pair. */
    UD_AV_PORT_ENFORCE(1 << 6),
    /** The current state can be given when modifying. */
    CURR_QP_STATE_MOD(1 << 7),
    /** A port can be shut down. */
    SHUTDOWN_PORT(1 << 8),
    /** Initialisation types. */
    INIT_TYPE(1 << 9),
    /** The event PORT_ACTIVE. */
    PORT_ACTIVE_EVENT(1 << 10),
    /** System image GUIDs. */
    SYS_IMAGE_GUID(1 << 11),
    /** Reliable connections answer receiver-not-ready. */
    RC_RNR_NAK_GEN(1 << 12),
    /** Shared receive queues can be resized. */
    SRQ_RESIZE(1 << 13),
    /** Notification after N completions. */
    N_NOTIFY_CQ(1 << 14),
    /** Type 1 memory windows. */
    MEM_WINDOW(1 << 17),
    /** Checksum offload for datagrams. */
    UD_IP_CSUM(1 << 18),
    /** Extended reliable connections. */
    XRC(1 << 20),
    /** Fast registration, SEND_WITH_INV and LOCAL_INV. */
    MEM_MGT_EXTENSIONS(1 << 21),
    /** Type 2A memory windows. */
    MEM_WINDOW_TYPE_2A(1 << 23),
    /** Type 2B memory windows. */
    MEM_WINDOW_TYPE_2B(1 << 24),
    /** Checksum offload for reliable connections. */
    RC_IP_CSUM(1 << 25),
    /** Checksum offload for raw packets. */
    RAW_IP_CSUM(1 << 26),
    /** Flow steering rules. */
    MANAGED_FLOW_STEERING(1 << 29);

    private final int value;

    DeviceCapability(int value) {
        this.value = value;
    }

    @Override
    public int value() {
        return value;
    }

    @Override
    public String cName() {
        return "IBV_DEVICE_" + name();
    }
}
