package org.verbena.verbs.packet;

import org.verbena.verbs.ffm.NativeConstant;
import org.verbena.verbs.packet.ffm.IbvFlowEspFilter;
import org.verbena.verbs.packet.ffm.IbvFlowEthFilter;
import org.verbena.verbs.packet.ffm.IbvFlowGreFilter;
import org.verbena.verbs.packet.ffm.IbvFlowIpv4ExtFilter;
import org.verbena.verbs.packet.ffm.IbvFlowIpv4Filter;
import org.verbena.verbs.packet.ffm.IbvFlowIpv6Filter;
import org.verbena.verbs.packet.ffm.IbvFlowMplsFilter;
import org.verbena.verbs.packet.ffm.IbvFlowSpecActionDrop;
import org.verbena.verbs.packet.ffm.IbvFlowSpecActionHandle;
import org.verbena.verbs.packet.ffm.IbvFlowSpecActionTag;
import org.verbena.verbs.packet.ffm.IbvFlowSpecCounterAction;
import org.verbena.verbs.packet.ffm.IbvFlowSpecEsp;
import org.verbena.verbs.packet.ffm.IbvFlowSpecEth;
import org.verbena.verbs.packet.ffm.IbvFlowSpecGre;
import org.verbena.verbs.packet.ffm.IbvFlowSpecIpv4;
import org.verbena.verbs.packet.ffm.IbvFlowSpecIpv4Ext;
import org.verbena.verbs.packet.ffm.IbvFlowSpecIpv6;
import org.verbena.verbs.packet.ffm.IbvFlowSpecMpls;
import org.verbena.verbs.packet.ffm.IbvFlowSpecTcpUdp;
import org.verbena.verbs.packet.ffm.IbvFlowSpecTunnel;
import org.verbena.verbs.packet.ffm.IbvFlowTcpUdpFilter;
import org.verbena.verbs.packet.ffm.IbvFlowTunnelFilter;

/**
 * The kind of a rule's part.
 *
 * <p>Source: ibv_create_flow(3)
 */
enum FlowSpecType implements NativeConstant {
    /** Ethernet. */
    ETH(0x20, IbvFlowSpecEth.SIZE, IbvFlowEthFilter.SIZE, IbvFlowSpecEth.VAL, IbvFlowSpecEth.MASK),
    /** IPv4 addresses. */
    IPV4(0x30, IbvFlowSpecIpv4.SIZE, IbvFlowIpv4Filter.SIZE, IbvFlowSpecIpv4.VAL, IbvFlowSpecIpv4.MASK),
    /** IPv6. */
    IPV6(0x31, IbvFlowSpecIpv6.SIZE, IbvFlowIpv6Filter.SIZE, IbvFlowSpecIpv6.VAL, IbvFlowSpecIpv6.MASK),
    /** IPv4, with the rest of its header. */
    IPV4_EXT(0x32, IbvFlowSpecIpv4Ext.SIZE, IbvFlowIpv4ExtFilter.SIZE, IbvFlowSpecIpv4Ext.VAL, IbvFlowSpecIpv4Ext.MASK),
    /** IPsec. */
    ESP(0x34, IbvFlowSpecEsp.SIZE, IbvFlowEspFilter.SIZE, IbvFlowSpecEsp.VAL, IbvFlowSpecEsp.MASK),
    /** TCP ports. */
    TCP(0x40, IbvFlowSpecTcpUdp.SIZE, IbvFlowTcpUdpFilter.SIZE, IbvFlowSpecTcpUdp.VAL, IbvFlowSpecTcpUdp.MASK),
    /** UDP ports. */
    UDP(0x41, IbvFlowSpecTcpUdp.SIZE, IbvFlowTcpUdpFilter.SIZE, IbvFlowSpecTcpUdp.VAL, IbvFlowSpecTcpUdp.MASK),
    /** VXLAN. */
    VXLAN_TUNNEL(0x50, IbvFlowSpecTunnel.SIZE, IbvFlowTunnelFilter.SIZE, IbvFlowSpecTunnel.VAL, IbvFlowSpecTunnel.MASK),
    /** GRE. */
    GRE(0x51, IbvFlowSpecGre.SIZE, IbvFlowGreFilter.SIZE, IbvFlowSpecGre.VAL, IbvFlowSpecGre.MASK),
    /** MPLS. */
    MPLS(0x60, IbvFlowSpecMpls.SIZE, IbvFlowMplsFilter.SIZE, IbvFlowSpecMpls.VAL, IbvFlowSpecMpls.MASK),
    /** A bit: the header is inside of a tunnel. */
    INNER(0x100, 0, 0, 0, 0),
    /** Marking. */
    ACTION_TAG(0x1000, IbvFlowSpecActionTag.SIZE, 0, 0, 0),
    /** Dropping. */
    ACTION_DROP(0x1001, IbvFlowSpecActionDrop.SIZE, 0, 0, 0),
    /** Changing. */
    ACTION_HANDLE(0x1002, IbvFlowSpecActionHandle.SIZE, 0, 0, 0),
    /** Counting. */
    ACTION_COUNT(0x1003, IbvFlowSpecCounterAction.SIZE, 0, 0, 0);

    private final int value;
    private final long sizeBytes;
    private final long filterBytes;
    private final long valueAt;
    private final long maskAt;

    /**
     * A kind.
     *
     * @param value in C
     * @param sizeBytes of the struct
     * @param filterBytes of what a header is compared with, and of the mask
     * @param valueAt where the value is in the struct
     * @param maskAt where the mask is
     */
    FlowSpecType(int value, long sizeBytes, long filterBytes, long valueAt, long maskAt) {
        this.value = value;
        this.sizeBytes = sizeBytes;
        this.filterBytes = filterBytes;
        this.valueAt = valueAt;
        this.maskAt = maskAt;
    }

    long sizeBytes() {
        return sizeBytes;
    }

    long filterBytes() {
        return filterBytes;
    }

    long valueAt() {
        return valueAt;
    }

    long maskAt() {
        return maskAt;
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
