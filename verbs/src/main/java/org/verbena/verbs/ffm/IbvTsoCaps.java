package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_tso_caps}: segmentation by a device. Source: infiniband/verbs.h */
public final class IbvTsoCaps {
    public static final StructLayout LAYOUT =
            CStruct.struct("ibv_tso_caps", CStruct.U32.withName("max_tso"), CStruct.U32.withName("supported_qpts"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long MAX_TSO = CStruct.offset(LAYOUT, "max_tso");
    public static final long SUPPORTED_QPTS = CStruct.offset(LAYOUT, "supported_qpts");

    private IbvTsoCaps() {}
}
