package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_cq_init_attr_ex}: what a completion queue is created with. Source: infiniband/verbs.h */
public final class IbvCqInitAttrEx {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_cq_init_attr_ex",
            CStruct.U32.withName("cqe"),
            CStruct.PTR.withName("cq_context"),
            CStruct.PTR.withName("channel"),
            CStruct.U32.withName("comp_vector"),
            CStruct.U64.withName("wc_flags"),
            CStruct.U32.withName("comp_mask"),
            CStruct.U32.withName("flags"),
            CStruct.PTR.withName("parent_domain"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long CQE = CStruct.offset(LAYOUT, "cqe");
    public static final long CQ_CONTEXT = CStruct.offset(LAYOUT, "cq_context");
    public static final long CHANNEL = CStruct.offset(LAYOUT, "channel");
    public static final long COMP_VECTOR = CStruct.offset(LAYOUT, "comp_vector");
    public static final long WC_FLAGS = CStruct.offset(LAYOUT, "wc_flags");
    public static final long COMP_MASK = CStruct.offset(LAYOUT, "comp_mask");
    public static final long FLAGS = CStruct.offset(LAYOUT, "flags");
    public static final long PARENT_DOMAIN = CStruct.offset(LAYOUT, "parent_domain");

    private IbvCqInitAttrEx() {}
}
