package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_wc_tm_info}: the tag of a message. Source: infiniband/verbs.h */
public final class IbvWcTmInfo {
    public static final StructLayout LAYOUT =
            CStruct.struct("ibv_wc_tm_info", CStruct.U64.withName("tag"), CStruct.U32.withName("priv"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long TAG = CStruct.offset(LAYOUT, "tag");
    public static final long PRIV = CStruct.offset(LAYOUT, "priv");

    private IbvWcTmInfo() {}
}
