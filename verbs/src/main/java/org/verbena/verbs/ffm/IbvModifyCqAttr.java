package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_modify_cq_attr}: what is modified of a completion queue. Source: infiniband/verbs.h */
public final class IbvModifyCqAttr {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_modify_cq_attr", CStruct.U32.withName("attr_mask"), IbvModerateCq.LAYOUT.withName("moderate"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long ATTR_MASK = CStruct.offset(LAYOUT, "attr_mask");
    public static final long MODERATE = CStruct.offset(LAYOUT, "moderate");

    private IbvModifyCqAttr() {}
}
