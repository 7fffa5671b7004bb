package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_srq_init_attr}: what a shared receive queue is created with. Source: infiniband/verbs.h */
public final class IbvSrqInitAttr {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_srq_init_attr", CStruct.PTR.withName("srq_context"), IbvSrqAttr.LAYOUT.withName("attr"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long SRQ_CONTEXT = CStruct.offset(LAYOUT, "srq_context");
    public static final long ATTR = CStruct.offset(LAYOUT, "attr");

    private IbvSrqInitAttr() {}
}
