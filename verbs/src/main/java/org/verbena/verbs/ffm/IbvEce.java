package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_ece}: enhanced connection establishment. Source: infiniband/verbs.h */
public final class IbvEce {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_ece",
            CStruct.U32.withName("vendor_id"),
            CStruct.U32.withName("options"),
            CStruct.U32.withName("comp_mask"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long VENDOR_ID = CStruct.offset(LAYOUT, "vendor_id");
    public static final long OPTIONS = CStruct.offset(LAYOUT, "options");
    public static final long COMP_MASK = CStruct.offset(LAYOUT, "comp_mask");

    private IbvEce() {}
}
