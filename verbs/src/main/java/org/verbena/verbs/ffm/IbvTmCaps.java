package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_tm_caps}: tag matching of a device. Source: infiniband/verbs.h */
public final class IbvTmCaps {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_tm_caps",
            CStruct.U32.withName("max_rndv_hdr_size"),
            CStruct.U32.withName("max_num_tags"),
            CStruct.U32.withName("flags"),
            CStruct.U32.withName("max_ops"),
            CStruct.U32.withName("max_sge"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long MAX_RNDV_HDR_SIZE = CStruct.offset(LAYOUT, "max_rndv_hdr_size");
    public static final long MAX_NUM_TAGS = CStruct.offset(LAYOUT, "max_num_tags");
    public static final long FLAGS = CStruct.offset(LAYOUT, "flags");
    public static final long MAX_OPS = CStruct.offset(LAYOUT, "max_ops");
    public static final long MAX_SGE = CStruct.offset(LAYOUT, "max_sge");

    private IbvTmCaps() {}
}
