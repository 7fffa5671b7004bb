package org.verbena.verbs.packet;

import org.verbena.verbs.ffm.NativeConstant;

/**
 * The kind of a rule's part.
 *
 * <p>Source: ibv_create_flow(3)
 */
enum FlowSpecType implements NativeConstant {
    /** Ethernet. */
    ETH(0x20),
    /** IPv4 addresses. */
    IPV4(0x30),
    /** IPv6. */
    IPV6(0x31),
    /** IPv4, with the rest of its header. */
    IPV4_EXT(0x32),
    /** IPsec. */
    ESP(0x34),
    /** TCP ports. */
    TCP(0x40),
    /** UDP ports. */
    UDP(0x41),
    /** VXLAN. */
    VXLAN_TUNNEL(0x50),
    /** GRE. */
    GRE(0x51),
    /** MPLS. */
    MPLS(0x60),
    /** A bit: the header is inside of a tunnel. */
    INNER(0x100),
    /** Marking. */
    ACTION_TAG(0x1000),
    /** Dropping. */
    ACTION_DROP(0x1001),
    /** Changing. */
    ACTION_HANDLE(0x1002),
    /** Counting. */
    ACTION_COUNT(0x1003);

    private final int value;

    FlowSpecType(int value) {
        this.value = value;
    }

    @Override
    public int value() {
        return value;
    }

    @Override
    public String cName() {
        return "IBV_FLOW_SPEC_" + name();
    }
}
