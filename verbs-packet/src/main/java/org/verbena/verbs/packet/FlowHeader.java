package org.verbena.verbs.packet;

/**
 * The headers that a {@link FlowMatch} can match.
 *
 * <p>Source: ibv_create_flow(3)
 */
public enum FlowHeader {
    /** Ethernet. */
    ETHERNET(FlowSpecType.ETH),
    /** IPv4. */
    IPV4(FlowSpecType.IPV4_EXT),
    /** IPv6. */
    IPV6(FlowSpecType.IPV6),
    /** TCP. */
    TCP(FlowSpecType.TCP),
    /** UDP. */
    UDP(FlowSpecType.UDP),
    /** VXLAN. */
    VXLAN(FlowSpecType.VXLAN_TUNNEL),
    /** GRE. */
    GRE(FlowSpecType.GRE),
    /**
     * MPLS. It stands between the parts whose headers are before and behind it in packets, which are then given in
     * order.
     */
    MPLS(FlowSpecType.MPLS),
    /** IPsec's ESP. */
    ESP(FlowSpecType.ESP);

    private final FlowSpecType type;

    FlowHeader(FlowSpecType type) {
        this.type = type;
    }

    /** The struct that has all of its fields. */
    FlowSpecType type() {
        return type;
    }
}
