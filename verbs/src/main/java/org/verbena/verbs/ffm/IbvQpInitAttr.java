package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_qp_init_attr}: what a queue pair is created with. Source: infiniband/verbs.h */
public final class IbvQpInitAttr {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_qp_init_attr",
            CStruct.PTR.withName("qp_context"),
            CStruct.PTR.withName("send_cq"),
            CStruct.PTR.withName("recv_cq"),
            CStruct.PTR.withName("srq"),
            IbvQpCap.LAYOUT.withName("cap"),
            CStruct.ENUM.withName("qp_type"),
            CStruct.I32.withName("sq_sig_all"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long QP_CONTEXT = CStruct.offset(LAYOUT, "qp_context");
    public static final long SEND_CQ = CStruct.offset(LAYOUT, "send_cq");
    public static final long RECV_CQ = CStruct.offset(LAYOUT, "recv_cq");
    public static final long SRQ = CStruct.offset(LAYOUT, "srq");
    public static final long CAP = CStruct.offset(LAYOUT, "cap");
    public static final long QP_TYPE = CStruct.offset(LAYOUT, "qp_type");
    public static final long SQ_SIG_ALL = CStruct.offset(LAYOUT, "sq_sig_all");

    private IbvQpInitAttr() {}
}
