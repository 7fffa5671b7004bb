package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_grh}: a global route header on the wire. Source: infiniband/verbs.h */
public final class IbvGrh {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_grh",
            CStruct.U32.withName("version_tclass_flow"),
            CStruct.U16.withName("paylen"),
            CStruct.U8.withName("next_hdr"),
            CStruct.U8.withName("hop_limit"),
            CStruct.array(2, CStruct.U64).withName("sgid"),
            CStruct.array(2, CStruct.U64).withName("dgid"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long VERSION_TCLASS_FLOW = CStruct.offset(LAYOUT, "version_tclass_flow");
    public static final long PAYLEN = CStruct.offset(LAYOUT, "paylen");
    public static final long NEXT_HDR = CStruct.offset(LAYOUT, "next_hdr");
    public static final long HOP_LIMIT = CStruct.offset(LAYOUT, "hop_limit");
    public static final long SGID = CStruct.offset(LAYOUT, "sgid");
    public static final long DGID = CStruct.offset(LAYOUT, "dgid");

    private IbvGrh() {}
}
