package org.verbena.verbs.packet.ffm;

import java.lang.foreign.StructLayout;
import org.verbena.verbs.ffm.CStruct;

/** {@code struct ibv_flow_gre_filter}: which GRE packets match. Source: infiniband/verbs.h */
public final class IbvFlowGreFilter {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_flow_gre_filter",
            CStruct.U16.withName("c_ks_res0_ver"),
            CStruct.U16.withName("protocol"),
            CStruct.U32.withName("key"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long C_KS_RES0_VER = CStruct.offset(LAYOUT, "c_ks_res0_ver");
    public static final long PROTOCOL = CStruct.offset(LAYOUT, "protocol");
    public static final long KEY = CStruct.offset(LAYOUT, "key");

    private IbvFlowGreFilter() {}
}
