package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_td}: a thread domain. Source: infiniband/verbs.h */
public final class IbvTd {
    public static final StructLayout LAYOUT = CStruct.struct("ibv_td", CStruct.PTR.withName("context"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long CONTEXT = CStruct.offset(LAYOUT, "context");

    private IbvTd() {}
}
