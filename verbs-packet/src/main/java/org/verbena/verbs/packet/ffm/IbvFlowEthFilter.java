package org.verbena.verbs.packet.ffm;

import java.lang.foreign.StructLayout;
import org.verbena.verbs.ffm.CStruct;

/** {@code struct ibv_flow_eth_filter}: which Ethernet frames match. Source: infiniband/verbs.h */
public final class IbvFlowEthFilter {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_flow_eth_filter",
            CStruct.array(6, CStruct.U8).withName("dst_mac"),
            CStruct.array(6, CStruct.U8).withName("src_mac"),
            CStruct.U16.withName("ether_type"),
            CStruct.U16.withName("vlan_tag"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long DST_MAC = CStruct.offset(LAYOUT, "dst_mac");
    public static final long SRC_MAC = CStruct.offset(LAYOUT, "src_mac");
    public static final long ETHER_TYPE = CStruct.offset(LAYOUT, "ether_type");
    public static final long VLAN_TAG = CStruct.offset(LAYOUT, "vlan_tag");

    private IbvFlowEthFilter() {}
}
