package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_global_route}: the global route of an address. Source: infiniband/verbs.h */
public final class IbvGlobalRoute {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_global_route",
            CStruct.array(2, CStruct.U64).withName("dgid"),
            CStruct.U32.withName("flow_label"),
            CStruct.U8.withName("sgid_index"),
            CStruct.U8.withName("hop_limit"),
            CStruct.U8.withName("traffic_class"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long DGID = CStruct.offset(LAYOUT, "dgid");
    public static final long FLOW_LABEL = CStruct.offset(LAYOUT, "flow_label");
    public static final long SGID_INDEX = CStruct.offset(LAYOUT, "sgid_index");
    public static final long HOP_LIMIT = CStruct.offset(LAYOUT, "hop_limit");
    public static final long TRAFFIC_CLASS = CStruct.offset(LAYOUT, "traffic_class");

    private IbvGlobalRoute() {}
}
