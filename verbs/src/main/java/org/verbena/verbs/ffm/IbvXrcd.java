package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_xrcd}: an XRC domain. Source: infiniband/verbs.h */
public final class IbvXrcd {
    public static final StructLayout LAYOUT = CStruct.struct("ibv_xrcd", CStruct.PTR.withName("context"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long CONTEXT = CStruct.offset(LAYOUT, "context");

    private IbvXrcd() {}
}
