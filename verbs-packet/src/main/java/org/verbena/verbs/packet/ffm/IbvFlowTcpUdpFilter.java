package org.verbena.verbs.packet.ffm;

import java.lang.foreign.StructLayout;
import org.verbena.verbs.ffm.CStruct;

/** {@code struct ibv_flow_tcp_udp_filter}: which TCP segments and UDP datagrams match. Source: infiniband/verbs.h */
public final class IbvFlowTcpUdpFilter {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_flow_tcp_udp_filter", CStruct.U16.withName("dst_port"), CStruct.U16.withName("src_port"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long DST_PORT = CStruct.offset(LAYOUT, "dst_port");
    public static final long SRC_PORT = CStruct.offset(LAYOUT, "src_port");

    private IbvFlowTcpUdpFilter() {}
}
