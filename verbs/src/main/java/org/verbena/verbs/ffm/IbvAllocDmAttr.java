package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_alloc_dm_attr}: what device memory is allocated with. Source: infiniband/verbs.h */
public final class IbvAllocDmAttr {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_alloc_dm_attr",
            CStruct.SIZE.withName("length"),
            CStruct.U32.withName("log_align_req"),
            CStruct.U32.withName("comp_mask"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long LENGTH = CStruct.offset(LAYOUT, "length");
    public static final long LOG_ALIGN_REQ = CStruct.offset(LAYOUT, "log_align_req");
    public static final long COMP_MASK = CStruct.offset(LAYOUT, "comp_mask");

    private IbvAllocDmAttr() {}
}
