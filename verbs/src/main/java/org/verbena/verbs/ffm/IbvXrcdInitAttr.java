package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_xrcd_init_attr}: what an XRC domain is opened with. Source: infiniband/verbs.h */
public final class IbvXrcdInitAttr {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_xrcd_init_attr",
            CStruct.U32.withName("comp_mask"),
            CStruct.I32.withName("fd"),
            CStruct.I32.withName("oflags"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long COMP_MASK = CStruct.offset(LAYOUT, "comp_mask");
    public static final long FD = CStruct.offset(LAYOUT, "fd");
    public static final long OFLAGS = CStruct.offset(LAYOUT, "oflags");

    private IbvXrcdInitAttr() {}
}
