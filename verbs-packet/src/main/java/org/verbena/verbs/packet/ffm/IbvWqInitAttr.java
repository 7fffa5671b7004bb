package org.verbena.verbs.packet.ffm;

import java.lang.foreign.StructLayout;
import org.verbena.verbs.ffm.CStruct;

/** {@code struct ibv_wq_init_attr}: what a receive work queue is created with. Source: infiniband/verbs.h */
public final class IbvWqInitAttr {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_wq_init_attr",
            CStruct.PTR.withName("wq_context"),
            CStruct.ENUM.withName("wq_type"),
            CStruct.U32.withName("max_wr"),
            CStruct.U32.withName("max_sge"),
            CStruct.PTR.withName("pd"),
            CStruct.PTR.withName("cq"),
            CStruct.U32.withName("comp_mask"),
            CStruct.U32.withName("create_flags"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long WQ_CONTEXT = CStruct.offset(LAYOUT, "wq_context");
    public static final long WQ_TYPE = CStruct.offset(LAYOUT, "wq_type");
    public static final long MAX_WR = CStruct.offset(LAYOUT, "max_wr");
    public static final long MAX_SGE = CStruct.offset(LAYOUT, "max_sge");
    public static final long PD = CStruct.offset(LAYOUT, "pd");
    public static final long CQ = CStruct.offset(LAYOUT, "cq");
    public static final long COMP_MASK = CStruct.offset(LAYOUT, "comp_mask");
    public static final long CREATE_FLAGS = CStruct.offset(LAYOUT, "create_flags");

    private IbvWqInitAttr() {}
}
