package org.verbena.verbs.packet.ffm;

import java.lang.foreign.StructLayout;
import org.verbena.verbs.ffm.CStruct;

/** {@code struct ibv_flow_spec_tunnel}: the part of a rule for VXLAN packets. Source: infiniband/verbs.h */
public final class IbvFlowSpecTunnel {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_flow_spec_tunnel",
            CStruct.ENUM.withName("type"),
            CStruct.U16.withName("size"),
            IbvFlowTunnelFilter.LAYOUT.withName("val"),
            IbvFlowTunnelFilter.LAYOUT.withName("mask"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long TYPE = CStruct.offset(LAYOUT, "type");
    public static final long SIZE_MEMBER = CStruct.offset(LAYOUT, "size");
    public static final long VAL = CStruct.offset(LAYOUT, "val");
    public static final long MASK = CStruct.offset(LAYOUT, "mask");

    private IbvFlowSpecTunnel() {}
}
