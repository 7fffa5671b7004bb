package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/**
 * {@code struct ibv_srq_init_attr_ex}: what a shared receive queue is created with, with what came later. Source:
 * infiniband/verbs.h
 */
public final class IbvSrqInitAttrEx {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_srq_init_attr_ex",
            CStruct.PTR.withName("srq_context"),
            IbvSrqAttr.LAYOUT.withName("attr"),
            CStruct.U32.withName("comp_mask"),
            CStruct.ENUM.withName("srq_type"),
            CStruct.PTR.withName("pd"),
            CStruct.PTR.withName("xrcd"),
            CStruct.PTR.withName("cq"),
            IbvTmCap.LAYOUT.withName("tm_cap"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long SRQ_CONTEXT = CStruct.offset(LAYOUT, "srq_context");
    public static final long ATTR = CStruct.offset(LAYOUT, "attr");
    public static final long COMP_MASK = CStruct.offset(LAYOUT, "comp_mask");
    public static final long SRQ_TYPE = CStruct.offset(LAYOUT, "srq_type");
    public static final long PD = CStruct.offset(LAYOUT, "pd");
    public static final long XRCD = CStruct.offset(LAYOUT, "xrcd");
    public static final long CQ = CStruct.offset(LAYOUT, "cq");
    public static final long TM_CAP = CStruct.offset(LAYOUT, "tm_cap");

    private IbvSrqInitAttrEx() {}
}
