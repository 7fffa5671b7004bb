package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_comp_channel}: a completion channel. Source: infiniband/verbs.h */
public final class IbvCompChannel {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_comp_channel",
            CStruct.PTR.withName("context"),
            CStruct.I32.withName("fd"),
            CStruct.I32.withName("refcnt"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long CONTEXT = CStruct.offset(LAYOUT, "context");
    public static final long FD = CStruct.offset(LAYOUT, "fd");
    public static final long REFCNT = CStruct.offset(LAYOUT, "refcnt");

    private IbvCompChannel() {}
}
