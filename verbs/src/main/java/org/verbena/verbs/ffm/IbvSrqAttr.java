package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_srq_attr}: the size and limit of a shared receive queue. Source: infiniband/verbs.h */
public final class IbvSrqAttr {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_srq_attr",
            CStruct.U32.withName("max_wr"),
            CStruct.U32.withName("max_sge"),
            CStruct.U32.withName("srq_limit"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long MAX_WR = CStruct.offset(LAYOUT, "max_wr");
    public static final long MAX_SGE = CStruct.offset(LAYOUT, "max_sge");
    public static final long SRQ_LIMIT = CStruct.offset(LAYOUT, "srq_limit");

    private IbvSrqAttr() {}
}
