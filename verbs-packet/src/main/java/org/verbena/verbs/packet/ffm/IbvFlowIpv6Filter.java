package org.verbena.verbs.packet.ffm;

import java.lang.foreign.StructLayout;
import org.verbena.verbs.ffm.CStruct;

/** {@code struct ibv_flow_ipv6_filter}: which IPv6 packets match. Source: infiniband/verbs.h */
public final class IbvFlowIpv6Filter {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_flow_ipv6_filter",
            CStruct.array(16, CStruct.U8).withName("src_ip"),
            CStruct.array(16, CStruct.U8).withName("dst_ip"),
            CStruct.U32.withName("flow_label"),
            CStruct.U8.withName("next_hdr"),
            CStruct.U8.withName("traffic_class"),
            CStruct.U8.withName("hop_limit"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long SRC_IP = CStruct.offset(LAYOUT, "src_ip");
    public static final long DST_IP = CStruct.offset(LAYOUT, "dst_ip");
    public static final long FLOW_LABEL = CStruct.offset(LAYOUT, "flow_label");
    public static final long NEXT_HDR = CStruct.offset(LAYOUT, "next_hdr");
    public static final long TRAFFIC_CLASS = CStruct.offset(LAYOUT, "traffic_class");
    public static final long HOP_LIMIT = CStruct.offset(LAYOUT, "hop_limit");

    private IbvFlowIpv6Filter() {}
}
