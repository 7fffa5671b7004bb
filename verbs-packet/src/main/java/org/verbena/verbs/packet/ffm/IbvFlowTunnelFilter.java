package org.verbena.verbs.packet.ffm;

import java.lang.foreign.StructLayout;
import org.verbena.verbs.ffm.CStruct;

/** {@code struct ibv_flow_tunnel_filter}: which VXLAN packets match. Source: infiniband/verbs.h */
public final class IbvFlowTunnelFilter {
    public static final StructLayout LAYOUT =
            CStruct.struct("ibv_flow_tunnel_filter", CStruct.U32.withName("tunnel_id"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long TUNNEL_ID = CStruct.offset(LAYOUT, "tunnel_id");

    private IbvFlowTunnelFilter() {}
}
