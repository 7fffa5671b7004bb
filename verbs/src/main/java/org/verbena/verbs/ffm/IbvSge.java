package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_sge}: an SGE: a range of registered memory. Source: infiniband/verbs.h */
public final class IbvSge {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_sge", CStruct.U64.withName("addr"), CStruct.U32.withName("length"), CStruct.U32.withName("lkey"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long ADDR = CStruct.offset(LAYOUT, "addr");
    public static final long LENGTH = CStruct.offset(LAYOUT, "length");
    public static final long LKEY = CStruct.offset(LAYOUT, "lkey");

    private IbvSge() {}
}
