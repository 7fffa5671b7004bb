package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_qp_rate_limit_attr}: rate limits of a queue pair. Source: infiniband/verbs.h */
public final class IbvQpRateLimitAttr {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_qp_rate_limit_attr",
            CStruct.U32.withName("rate_limit"),
            CStruct.U32.withName("max_burst_sz"),
            CStruct.U16.withName("typical_pkt_sz"),
            CStruct.U32.withName("comp_mask"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long RATE_LIMIT = CStruct.offset(LAYOUT, "rate_limit");
    public static final long MAX_BURST_SZ = CStruct.offset(LAYOUT, "max_burst_sz");
    public static final long TYPICAL_PKT_SZ = CStruct.offset(LAYOUT, "typical_pkt_sz");
    public static final long COMP_MASK = CStruct.offset(LAYOUT, "comp_mask");

    private IbvQpRateLimitAttr() {}
}
