package org.verbena.verbs.packet.ffm;

import java.lang.foreign.StructLayout;
import org.verbena.verbs.ffm.CStruct;

/** {@code struct ibv_flow_spec_mpls}: the part of a rule for MPLS packets. Source: infiniband/verbs.h */
public final class IbvFlowSpecMpls {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_flow_spec_mpls",
            CStruct.ENUM.withName("type"),
            CStruct.U16.withName("size"),
            IbvFlowMplsFilter.LAYOUT.withName("val"),
            IbvFlowMplsFilter.LAYOUT.withName("mask"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long TYPE = CStruct.offset(LAYOUT, "type");
    public static final long SIZE_MEMBER = CStruct.offset(LAYOUT, "size");
    public static final long VAL = CStruct.offset(LAYOUT, "val");
    public static final long MASK = CStruct.offset(LAYOUT, "mask");

    private IbvFlowSpecMpls() {}
}
