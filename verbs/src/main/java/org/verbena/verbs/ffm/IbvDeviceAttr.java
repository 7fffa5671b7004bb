package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_device_attr}: what a device can do. Source: infiniband/verbs.h */
public final class IbvDeviceAttr {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_device_attr",
            CStruct.array(64, CStruct.U8).withName("fw_ver"),
            CStruct.U64.withName("node_guid"),
            CStruct.U64.withName("sys_image_guid"),
            CStruct.U64.withName("max_mr_size"),
            CStruct.U64.withName("page_size_cap"),
            CStruct.U32.withName("vendor_id"),
            CStruct.U32.withName("vendor_part_id"),
            CStruct.U32.withName("hw_ver"),
            CStruct.I32.withName("max_qp"),
            CStruct.I32.withName("max_qp_wr"),
            CStruct.U32.withName("device_cap_flags"),
            CStruct.I32.withName("max_sge"),
            CStruct.I32.withName("max_sge_rd"),
            CStruct.I32.withName("max_cq"),
            CStruct.I32.withName("max_cqe"),
            CStruct.I32.withName("max_mr"),
            CStruct.I32.withName("max_pd"),
            CStruct.I32.withName("max_qp_rd_atom"),
            CStruct.I32.withName("max_ee_rd_atom"),
            CStruct.I32.withName("max_res_rd_atom"),
            CStruct.I32.withName("max_qp_init_rd_atom"),
            CStruct.I32.withName("max_ee_init_rd_atom"),
            CStruct.ENUM.withName("atomic_cap"),
            CStruct.I32.withName("max_ee"),
            CStruct.I32.withName("max_rdd"),
            CStruct.I32.withName("max_mw"),
            CStruct.I32.withName("max_raw_ipv6_qp"),
            CStruct.I32.withName("max_raw_ethy_qp"),
            CStruct.I32.withName("max_mcast_grp"),
            CStruct.I32.withName("max_mcast_qp_attach"),
            CStruct.I32.withName("max_total_mcast_qp_attach"),
            CStruct.I32.withName("max_ah"),
            CStruct.I32.withName("max_fmr"),
            CStruct.I32.withName("max_map_per_fmr"),
            CStruct.I32.withName("max_srq"),
            CStruct.I32.withName("max_srq_wr"),
            CStruct.I32.withName("max_srq_sge"),
            CStruct.U16.withName("max_pkeys"),
            CStruct.U8.withName("local_ca_ack_delay"),
            CStruct.U8.withName("phys_port_cnt"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long FW_VER = CStruct.offset(LAYOUT, "fw_ver");
    public static final long NODE_GUID = CStruct.offset(LAYOUT, "node_guid");
    public static final long SYS_IMAGE_GUID = CStruct.offset(LAYOUT, "sys_image_guid");
    public static final long MAX_MR_SIZE = CStruct.offset(LAYOUT, "max_mr_size");
    public static final long PAGE_SIZE_CAP = CStruct.offset(LAYOUT, "page_size_cap");
    public static final long VENDOR_ID = CStruct.offset(LAYOUT, "vendor_id");
    public static final long VENDOR_PART_ID = CStruct.offset(LAYOUT, "vendor_part_id");
    public static final long HW_VER = CStruct.offset(LAYOUT, "hw_ver");
    public static final long MAX_QP = CStruct.offset(LAYOUT, "max_qp");
    public static final long MAX_QP_WR = CStruct.offset(LAYOUT, "max_qp_wr");
    public static final long DEVICE_CAP_FLAGS = CStruct.offset(LAYOUT, "device_cap_flags");
    public static final long MAX_SGE = CStruct.offset(LAYOUT, "max_sge");
    public static final long MAX_SGE_RD = CStruct.offset(LAYOUT, "max_sge_rd");
    public static final long MAX_CQ = CStruct.offset(LAYOUT, "max_cq");
    public static final long MAX_CQE = CStruct.offset(LAYOUT, "max_cqe");
    public static final long MAX_MR = CStruct.offset(LAYOUT, "max_mr");
    public static final long MAX_PD = CStruct.offset(LAYOUT, "max_pd");
    public static final long MAX_QP_RD_ATOM = CStruct.offset(LAYOUT, "max_qp_rd_atom");
    public static final long MAX_EE_RD_ATOM = CStruct.offset(LAYOUT, "max_ee_rd_atom");
    public static final long MAX_RES_RD_ATOM = CStruct.offset(LAYOUT, "max_res_rd_atom");
    public static final long MAX_QP_INIT_RD_ATOM = CStruct.offset(LAYOUT, "max_qp_init_rd_atom");
    public static final long MAX_EE_INIT_RD_ATOM = CStruct.offset(LAYOUT, "max_ee_init_rd_atom");
    public static final long ATOMIC_CAP = CStruct.offset(LAYOUT, "atomic_cap");
    public static final long MAX_EE = CStruct.offset(LAYOUT, "max_ee");
    public static final long MAX_RDD = CStruct.offset(LAYOUT, "max_rdd");
    public static final long MAX_MW = CStruct.offset(LAYOUT, "max_mw");
    public static final long MAX_RAW_IPV6_QP = CStruct.offset(LAYOUT, "max_raw_ipv6_qp");
    public static final long MAX_RAW_ETHY_QP = CStruct.offset(LAYOUT, "max_raw_ethy_qp");
    public static final long MAX_MCAST_GRP = CStruct.offset(LAYOUT, "max_mcast_grp");
    public static final long MAX_MCAST_QP_ATTACH = CStruct.offset(LAYOUT, "max_mcast_qp_attach");
    public static final long MAX_TOTAL_MCAST_QP_ATTACH = CStruct.offset(LAYOUT, "max_total_mcast_qp_attach");
    public static final long MAX_AH = CStruct.offset(LAYOUT, "max_ah");
    public static final long MAX_FMR = CStruct.offset(LAYOUT, "max_fmr");
    public static final long MAX_MAP_PER_FMR = CStruct.offset(LAYOUT, "max_map_per_fmr");
    public static final long MAX_SRQ = CStruct.offset(LAYOUT, "max_srq");
    public static final long MAX_SRQ_WR = CStruct.offset(LAYOUT, "max_srq_wr");
    public static final long MAX_SRQ_SGE = CStruct.offset(LAYOUT, "max_srq_sge");
    public static final long MAX_PKEYS = CStruct.offset(LAYOUT, "max_pkeys");
    public static final long LOCAL_CA_ACK_DELAY = CStruct.offset(LAYOUT, "local_ca_ack_delay");
    public static final long PHYS_PORT_CNT = CStruct.offset(LAYOUT, "phys_port_cnt");

    private IbvDeviceAttr() {}
}
