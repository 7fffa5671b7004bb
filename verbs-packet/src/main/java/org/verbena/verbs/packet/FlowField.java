package org.verbena.verbs.packet;

import org.verbena.verbs.packet.ffm.IbvFlowEspFilter;
import org.verbena.verbs.packet.ffm.IbvFlowEthFilter;
import org.verbena.verbs.packet.ffm.IbvFlowGreFilter;
import org.verbena.verbs.packet.ffm.IbvFlowIpv4ExtFilter;
import org.verbena.verbs.packet.ffm.IbvFlowIpv6Filter;
import org.verbena.verbs.packet.ffm.IbvFlowMplsFilter;
import org.verbena.verbs.packet.ffm.IbvFlowTcpUdpFilter;
import org.verbena.verbs.packet.ffm.IbvFlowTunnelFilter;

/**
 * The fields of headers that a {@link FlowMatch} can match.
 *
 * <p>Source: ibv_create_flow(3)
 */
public enum FlowField {
    /** Ethernet's destination, 6 bytes. */
    DESTINATION_MAC(FlowHeader.ETHERNET, IbvFlowEthFilter.DST_MAC, 6),
    /** Ethernet's source, 6 bytes. */
    SOURCE_MAC(FlowHeader.ETHERNET, IbvFlowEthFilter.SRC_MAC, 6),
    /** The protocol that an Ethernet frame carries, after the last VLAN tag; 0x0800 is IPv4. */
    ETHER_TYPE(FlowHeader.ETHERNET, IbvFlowEthFilter.ETHER_TYPE, 2),
    /** The VLAN, whatever its priority: 0 to 4095. */
    VLAN(FlowHeader.ETHERNET, IbvFlowEthFilter.VLAN_TAG, 2, 12, 0),
    /** The VLAN tag: priority (3 bits), DEI (1 bit), VLAN (12 bits). */
    VLAN_TAG(FlowHeader.ETHERNET, IbvFlowEthFilter.VLAN_TAG, 2),

    /** IPv4's source, 4 bytes. */
    IPV4_SOURCE(FlowHeader.IPV4, IbvFlowIpv4ExtFilter.SRC_IP, 4),
    /** IPv4's destination, 4 bytes. */
    IPV4_DESTINATION(FlowHeader.IPV4, IbvFlowIpv4ExtFilter.DST_IP, 4),
    /** The protocol that an IPv4 packet carries; 17 is UDP. */
    IPV4_PROTOCOL(FlowHeader.IPV4, IbvFlowIpv4ExtFilter.PROTO, 1),
    /** IPv4's type of service: DSCP and ECN. */
    IPV4_TYPE_OF_SERVICE(FlowHeader.IPV4, IbvFlowIpv4ExtFilter.TOS, 1),
    /** The number of hops that an IPv4 packet may still take. */
    IPV4_TIME_TO_LIVE(FlowHeader.IPV4, IbvFlowIpv4ExtFilter.TTL, 1),
    /** IPv4's fragmentation flags. */
    IPV4_FLAGS(FlowHeader.IPV4, IbvFlowIpv4ExtFilter.FLAGS, 1),

    /** IPv6's source, 16 bytes. */
    IPV6_SOURCE(FlowHeader.IPV6, IbvFlowIpv6Filter.SRC_IP, 16),
    /** IPv6's destination, 16 bytes. */
    IPV6_DESTINATION(FlowHeader.IPV6, IbvFlowIpv6Filter.DST_IP, 16),
    /** IPv6's flow label, 20 bits. */
    IPV6_FLOW_LABEL(FlowHeader.IPV6, IbvFlowIpv6Filter.FLOW_LABEL, 4, 20, 0),
    /** The protocol that an IPv6 packet carries; 17 is UDP. */
    IPV6_NEXT_HEADER(FlowHeader.IPV6, IbvFlowIpv6Filter.NEXT_HDR, 1),
    /** IPv6's traffic class: DSCP and ECN. */
    IPV6_TRAFFIC_CLASS(FlowHeader.IPV6, IbvFlowIpv6Filter.TRAFFIC_CLASS, 1),
    /** The number of hops that an IPv6 packet may still take. */
    IPV6_HOP_LIMIT(FlowHeader.IPV6, IbvFlowIpv6Filter.HOP_LIMIT, 1),

    /** The destination of TCP or UDP. */
    DESTINATION_PORT(FlowHeader.TCP, FlowHeader.UDP, IbvFlowTcpUdpFilter.DST_PORT, 2, 16, 0),
    /** The source of TCP or UDP. */
    SOURCE_PORT(FlowHeader.TCP, FlowHeader.UDP, IbvFlowTcpUdpFilter.SRC_PORT, 2, 16, 0),

    /** VXLAN's network identifier, 24 bits. */
    VXLAN_NETWORK(FlowHeader.VXLAN, IbvFlowTunnelFilter.TUNNEL_ID, 4, 24, 0),

    /**
     * GRE's first 16 bits: checksum, key and sequence number present (0x8000, 0x2000, 0x1000), and the version.
     */
    GRE_FLAGS_AND_VERSION(FlowHeader.GRE, IbvFlowGreFilter.C_KS_RES0_VER, 2),
    /** The protocol that GRE carries, as an Ethernet type. */
    GRE_PROTOCOL(FlowHeader.GRE, IbvFlowGreFilter.PROTOCOL, 2),
    /** GRE's key, 32 bits. */
    GRE_KEY(FlowHeader.GRE, IbvFlowGreFilter.KEY, 4),

    /** MPLS' label, 20 bits, whatever its traffic class and time to live. */
    MPLS_LABEL(FlowHeader.MPLS, IbvFlowMplsFilter.LABEL, 4, 20, 12),
    /** The whole of an MPLS entry: label (20 bits), traffic class (3), bottom of stack (1), time to live (8). */
    MPLS_ENTRY(FlowHeader.MPLS, IbvFlowMplsFilter.LABEL, 4),

    /** ESP's security parameters index, 32 bits. */
    ESP_PARAMETERS_INDEX(FlowHeader.ESP, IbvFlowEspFilter.SPI, 4),
    /** ESP's sequence number, 32 bits. */
    ESP_SEQUENCE_NUMBER(FlowHeader.ESP, IbvFlowEspFilter.SEQ, 4);

    private final FlowHeader header;
    private final FlowHeader otherHeader;
    private final int offset;
    private final int bytes;
    private final int bits;
    private final int shift;

    FlowField(FlowHeader header, long offset, int bytes) {
        this(header, offset, bytes, bytes * Byte.SIZE, 0);
    }

    FlowField(FlowHeader header, long offset, int bytes, int bits, int shift) {
        this(header, header, offset, bytes, bits, shift);
    }

    /**
     * A field.
     *
     * @param header that has it
     * @param otherHeader that has it too, or the same
     * @param offset in C's filter
     * @param bytes how long it is there
     * @param bits how many of its bits it has
     * @param shift how many bits of other fields are below
     */
    FlowField(FlowHeader header, FlowHeader otherHeader, long offset, int bytes, int bits, int shift) {
        this.header = header;
        this.otherHeader = otherHeader;
        this.offset = (int) offset;
        this.bytes = bytes;
        this.bits = bits;
        this.shift = shift;
    }

    boolean isOf(FlowHeader some) {
        return some == header || some == otherHeader;
    }

    int offset() {
        return offset;
    }

    int bytes() {
        return bytes;
    }

    int bits() {
        return bits;
    }

    /** The field's bits as C has them, in network order. */
    byte[] toBytes(long value) {
        byte[] order = new byte[bytes];
        for (int i = 0; i < bytes; i++) {
            order[i] = (byte) ((value << shift) >>> ((bytes - 1 - i) * Byte.SIZE));
        }
        return order;
    }
}
