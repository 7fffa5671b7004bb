package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_device_attr_ex}: what a device can do, with what came later. Source: infiniband/verbs.h */
public final class IbvDeviceAttrEx {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_device_attr_ex",
            IbvDeviceAttr.LAYOUT.withName("orig_attr"),
            CStruct.U32.withName("comp_mask"),
            IbvOdpCaps.LAYOUT.withName("odp_caps"),
            CStruct.U64.withName("completion_timestamp_mask"),
            CStruct.U64.withName("hca_core_clock"),
            CStruct.U64.withName("device_cap_flags_ex"),
            IbvTsoCaps.LAYOUT.withName("tso_caps"),
            IbvRssCaps.LAYOUT.withName("rss_caps"),
            CStruct.U32.withName("max_wq_type_rq"),
            IbvPacketPacingCaps.LAYOUT.withName("packet_pacing_caps"),
            CStruct.U32.withName("raw_packet_caps"),
            IbvTmCaps.LAYOUT.withName("tm_caps"),
            IbvCqModerationCaps.LAYOUT.withName("cq_mod_caps"),
            CStruct.U64.withName("max_dm_size"),
            IbvPciAtomicCaps.LAYOUT.withName("pci_atomic_caps"),
            CStruct.U32.withName("xrc_odp_caps"),
            CStruct.U32.withName("phys_port_cnt_ex"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long ORIG_ATTR = CStruct.offset(LAYOUT, "orig_attr");
    public static final long COMP_MASK = CStruct.offset(LAYOUT, "comp_mask");
    public static final long ODP_CAPS = CStruct.offset(LAYOUT, "odp_caps");
    public static final long COMPLETION_TIMESTAMP_MASK = CStruct.offset(LAYOUT, "completion_timestamp_mask");
    public static final long HCA_CORE_CLOCK = CStruct.offset(LAYOUT, "hca_core_clock");
    public static final long DEVICE_CAP_FLAGS_EX = CStruct.offset(LAYOUT, "device_cap_flags_ex");
    public static final long TSO_CAPS = CStruct.offset(LAYOUT, "tso_caps");
    public static final long RSS_CAPS = CStruct.offset(LAYOUT, "rss_caps");
    public static final long MAX_WQ_TYPE_RQ = CStruct.offset(LAYOUT, "max_wq_type_rq");
    public static final long PACKET_PACING_CAPS = CStruct.offset(LAYOUT, "packet_pacing_caps");
    public static final long RAW_PACKET_CAPS = CStruct.offset(LAYOUT, "raw_packet_caps");
    public static final long TM_CAPS = CStruct.offset(LAYOUT, "tm_caps");
    public static final long CQ_MOD_CAPS = CStruct.offset(LAYOUT, "cq_mod_caps");
    public static final long MAX_DM_SIZE = CStruct.offset(LAYOUT, "max_dm_size");
    public static final long PCI_ATOMIC_CAPS = CStruct.offset(LAYOUT, "pci_atomic_caps");
    public static final long XRC_ODP_CAPS = CStruct.offset(LAYOUT, "xrc_odp_caps");
    public static final long PHYS_PORT_CNT_EX = CStruct.offset(LAYOUT, "phys_port_cnt_ex");

    private IbvDeviceAttrEx() {}
}
