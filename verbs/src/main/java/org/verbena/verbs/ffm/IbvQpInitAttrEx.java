package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/**
 * {@code struct ibv_qp_init_attr_ex}: what a queue pair is created with, with what came later. Source:
 * infiniband/verbs.h
 */
public final class IbvQpInitAttrEx {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_qp_init_attr_ex",
            CStruct.PTR.withName("qp_context"),
            CStruct.PTR.withName("send_cq"),
            CStruct.PTR.withName("recv_cq"),
            CStruct.PTR.withName("srq"),
            IbvQpCap.LAYOUT.withName("cap"),
            CStruct.ENUM.withName("qp_type"),
            CStruct.I32.withName("sq_sig_all"),
            CStruct.U32.withName("comp_mask"),
            CStruct.PTR.withName("pd"),
            CStruct.PTR.withName("xrcd"),
            CStruct.U32.withName("create_flags"),
            CStruct.U16.withName("max_tso_header"),
            CStruct.PTR.withName("rwq_ind_tbl"),
            IbvRxHashConf.LAYOUT.withName("rx_hash_conf"),
            CStruct.U32.withName("source_qpn"),
            CStruct.U64.withName("send_ops_flags"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long QP_CONTEXT = CStruct.offset(LAYOUT, "qp_context");
    public static final long SEND_CQ = CStruct.offset(LAYOUT, "send_cq");
    public static final long RECV_CQ = CStruct.offset(LAYOUT, "recv_cq");
    public static final long SRQ = CStruct.offset(LAYOUT, "srq");
    public static final long CAP = CStruct.offset(LAYOUT, "cap");
    public static final long QP_TYPE = CStruct.offset(LAYOUT, "qp_type");
    public static final long SQ_SIG_ALL = CStruct.offset(LAYOUT, "sq_sig_all");
    public static final long COMP_MASK = CStruct.offset(LAYOUT, "comp_mask");
    public static final long PD = CStruct.offset(LAYOUT, "pd");
    public static final long XRCD = CStruct.offset(LAYOUT, "xrcd");
    public static final long CREATE_FLAGS = CStruct.offset(LAYOUT, "create_flags");
    public static final long MAX_TSO_HEADER = CStruct.offset(LAYOUT, "max_tso_header");
    public static final long RWQ_IND_TBL = CStruct.offset(LAYOUT, "rwq_ind_tbl");
    public static final long RX_HASH_CONF = CStruct.offset(LAYOUT, "rx_hash_conf");
    public static final long SOURCE_QPN = CStruct.offset(LAYOUT, "source_qpn");
    public static final long SEND_OPS_FLAGS = CStruct.offset(LAYOUT, "send_ops_flags");

    private IbvQpInitAttrEx() {}
}
