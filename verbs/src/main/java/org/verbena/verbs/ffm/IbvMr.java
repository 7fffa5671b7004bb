package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_mr}: a memory region. Source: infiniband/verbs.h */
public final class IbvMr {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_mr",
            CStruct.PTR.withName("context"),
            CStruct.PTR.withName("pd"),
            CStruct.PTR.withName("addr"),
            CStruct.SIZE.withName("length"),
            CStruct.U32.withName("handle"),
            CStruct.U32.withName("lkey"),
            CStruct.U32.withName("rkey"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long CONTEXT = CStruct.offset(LAYOUT, "context");
    public static final long PD = CStruct.offset(LAYOUT, "pd");
    public static final long ADDR = CStruct.offset(LAYOUT, "addr");
    public static final long LENGTH = CStruct.offset(LAYOUT, "length");
    public static final long HANDLE = CStruct.offset(LAYOUT, "handle");
    public static final long LKEY = CStruct.offset(LAYOUT, "lkey");
    public static final long RKEY = CStruct.offset(LAYOUT, "rkey");

    private IbvMr() {}
}
