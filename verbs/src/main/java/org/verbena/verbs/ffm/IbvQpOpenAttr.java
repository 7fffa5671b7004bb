package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_qp_open_attr}: what a shared queue pair is opened with. Source: infiniband/verbs.h */
public final class IbvQpOpenAttr {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_qp_open_attr",
            CStruct.U32.withName("comp_mask"),
            CStruct.U32.withName("qp_num"),
            CStruct.PTR.withName("xrcd"),
            CStruct.PTR.withName("qp_context"),
            CStruct.ENUM.withName("qp_type"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long COMP_MASK = CStruct.offset(LAYOUT, "comp_mask");
    public static final long QP_NUM = CStruct.offset(LAYOUT, "qp_num");
    public static final long XRCD = CStruct.offset(LAYOUT, "xrcd");
    public static final long QP_CONTEXT = CStruct.offset(LAYOUT, "qp_context");
    public static final long QP_TYPE = CStruct.offset(LAYOUT, "qp_type");

    private IbvQpOpenAttr() {}
}
