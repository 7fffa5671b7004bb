package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_packet_pacing_caps}: rate limits of a device. Source: infiniband/verbs.h */
public final class IbvPacketPacingCaps {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_packet_pacing_caps",
            CStruct.U32.withName("qp_rate_limit_min"),
            CStruct.U32.withName("qp_rate_limit_max"),
            CStruct.U32.withName("supported_qpts"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long QP_RATE_LIMIT_MIN = CStruct.offset(LAYOUT, "qp_rate_limit_min");
    public static final long QP_RATE_LIMIT_MAX = CStruct.offset(LAYOUT, "qp_rate_limit_max");
    public static final long SUPPORTED_QPTS = CStruct.offset(LAYOUT, "supported_qpts");

    private IbvPacketPacingCaps() {}
}
