package org.verbena.verbs.packet.ffm;

import java.lang.foreign.StructLayout;
import org.verbena.verbs.ffm.CStruct;

/** {@code struct ibv_flow_ipv4_filter}: which IPv4 packets match. Source: infiniband/verbs.h */
public final class IbvFlowIpv4Filter {
    public static final StructLayout LAYOUT =
            CStruct.struct("ibv_flow_ipv4_filter", CStruct.U32.withName("src_ip"), CStruct.U32.withName("dst_ip"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long SRC_IP = CStruct.offset(LAYOUT, "src_ip");
    public static final long DST_IP = CStruct.offset(LAYOUT, "dst_ip");

    private IbvFlowIpv4Filter() {}
}
