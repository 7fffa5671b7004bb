package org.verbena.verbs.packet.ffm;

import java.lang.foreign.StructLayout;
import org.verbena.verbs.ffm.CStruct;

/** {@code struct ibv_flow_ipv4_ext_filter}: which IPv4 packets match. Source: infiniband/verbs.h */
public final class IbvFlowIpv4ExtFilter {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_flow_ipv4_ext_filter",
            CStruct.U32.withName("src_ip"),
            CStruct.U32.withName("dst_ip"),
            CStruct.U8.withName("proto"),
            CStruct.U8.withName("tos"),
            CStruct.U8.withName("ttl"),
            CStruct.U8.withName("flags"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long SRC_IP = CStruct.offset(LAYOUT, "src_ip");
    public static final long DST_IP = CStruct.offset(LAYOUT, "dst_ip");
    public static final long PROTO = CStruct.offset(LAYOUT, "proto");
    public static final long TOS = CStruct.offset(LAYOUT, "tos");
    public static final long TTL = CStruct.offset(LAYOUT, "ttl");
    public static final long FLAGS = CStruct.offset(LAYOUT, "flags");

    private IbvFlowIpv4ExtFilter() {}
}
