package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_ah}: an address handle. Source: infiniband/verbs.h */
public final class IbvAh {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_ah", CStruct.PTR.withName("context"), CStruct.PTR.withName("pd"), CStruct.U32.withName("handle"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long CONTEXT = CStruct.offset(LAYOUT, "context");
    public static final long PD = CStruct.offset(LAYOUT, "pd");
    public static final long HANDLE = CStruct.offset(LAYOUT, "handle");

    private IbvAh() {}
}
