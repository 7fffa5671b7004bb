package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_dm}: device memory. Source: infiniband/verbs.h */
public final class IbvDm {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_dm",
            CStruct.PTR.withName("context"),
            CStruct.PTR.withName("memcpy_to_dm"),
            CStruct.PTR.withName("memcpy_from_dm"),
            CStruct.U32.withName("comp_mask"),
            CStruct.U32.withName("handle"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long CONTEXT = CStruct.offset(LAYOUT, "context");
    public static final long MEMCPY_TO_DM = CStruct.offset(LAYOUT, "memcpy_to_dm");
    public static final long MEMCPY_FROM_DM = CStruct.offset(LAYOUT, "memcpy_from_dm");
    public static final long COMP_MASK = CStruct.offset(LAYOUT, "comp_mask");
    public static final long HANDLE = CStruct.offset(LAYOUT, "handle");

    private IbvDm() {}
}
