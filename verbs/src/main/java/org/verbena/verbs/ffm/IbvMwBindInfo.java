package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_mw_bind_info}: what a memory window is bound to. Source: infiniband/verbs.h */
public final class IbvMwBindInfo {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_mw_bind_info",
            CStruct.PTR.withName("mr"),
            CStruct.U64.withName("addr"),
            CStruct.U64.withName("length"),
            CStruct.U32.withName("mw_access_flags"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long MR = CStruct.offset(LAYOUT, "mr");
    public static final long ADDR = CStruct.offset(LAYOUT, "addr");
    public static final long LENGTH = CStruct.offset(LAYOUT, "length");
    public static final long MW_ACCESS_FLAGS = CStruct.offset(LAYOUT, "mw_access_flags");

    private IbvMwBindInfo() {}
}
