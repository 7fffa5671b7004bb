package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_pd}: a protection domain. Source: infiniband/verbs.h */
public final class IbvPd {
    public static final StructLayout LAYOUT =
            CStruct.struct("ibv_pd", CStruct.PTR.withName("context"), CStruct.U32.withName("handle"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long CONTEXT = CStruct.offset(LAYOUT, "context");
    public static final long HANDLE = CStruct.offset(LAYOUT, "handle");

    private IbvPd() {}
}
