package org.verbena.verbs.packet.ffm;

import java.lang.foreign.StructLayout;
import org.verbena.verbs.ffm.CStruct;

/** {@code struct ibv_flow_mpls_filter}: which MPLS packets match. Source: infiniband/verbs.h */
public final class IbvFlowMplsFilter {
    public static final StructLayout LAYOUT = CStruct.struct("ibv_flow_mpls_filter", CStruct.U32.withName("label"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long LABEL = CStruct.offset(LAYOUT, "label");

    private IbvFlowMplsFilter() {}
}
