package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_tm_cap}: tag matching of a shared receive queue. Source: infiniband/verbs.h */
public final class IbvTmCap {
    public static final StructLayout LAYOUT =
            CStruct.struct("ibv_tm_cap", CStruct.U32.withName("max_num_tags"), CStruct.U32.withName("max_ops"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long MAX_NUM_TAGS = CStruct.offset(LAYOUT, "max_num_tags");
    public static final long MAX_OPS = CStruct.offset(LAYOUT, "max_ops");

    private IbvTmCap() {}
}
