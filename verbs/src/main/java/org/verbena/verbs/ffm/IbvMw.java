package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_mw}: a memory window. Source: infiniband/verbs.h */
public final class IbvMw {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_mw",
            CStruct.PTR.withName("context"),
            CStruct.PTR.withName("pd"),
            CStruct.U32.withName("rkey"),
            CStruct.U32.withName("handle"),
            CStruct.ENUM.withName("type"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long CONTEXT = CStruct.offset(LAYOUT, "context");
    public static final long PD = CStruct.offset(LAYOUT, "pd");
    public static final long RKEY = CStruct.offset(LAYOUT, "rkey");
    public static final long HANDLE = CStruct.offset(LAYOUT, "handle");
    public static final long TYPE = CStruct.offset(LAYOUT, "type");

    private IbvMw() {}
}
