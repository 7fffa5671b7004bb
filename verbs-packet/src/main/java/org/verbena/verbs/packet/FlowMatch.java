package org.verbena.verbs.packet;

import org.verbena.verbs.EthernetAddress;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.Inet4Address;
import java.net.Inet6Address;
import java.util.HexFormat;
import org.verbena.verbs.packet.ffm.IbvFlowEspFilter;
import org.verbena.verbs.packet.ffm.IbvFlowEthFilter;
import org.verbena.verbs.packet.ffm.IbvFlowGreFilter;
import org.verbena.verbs.packet.ffm.IbvFlowIpv4ExtFilter;
import org.verbena.verbs.packet.ffm.IbvFlowIpv4Filter;
import org.verbena.verbs.packet.ffm.IbvFlowIpv6Filter;
import org.verbena.verbs.packet.ffm.IbvFlowMplsFilter;
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
import org.verbena.verbs.ffm.Ranges;

/**
 * A header that packets must have. Fields that are not set match any value. Immutable: each method returns a new
 * object.
 *
 * <pre>{@code
 * FlowMatch.ipv4().source((Inet4Address) InetAddress.getByName("10.0.0.0"), 8);
 * FlowMatch.udp().destinationPort(4791);
 * }</pre>
 *
 * <p>Values are in host order; they are passed to the device in network order. Most devices match a field as a whole or
 * not at all, and refuse other masks.
 *
 * <p>Source: ibv_create_flow(3)
 *
 * @param <S> the kind of header
 */
public abstract sealed class FlowMatch<S extends FlowMatch<S>> extends FlowSpec {
    private final byte[] value;
    private final byte[] mask;
    private final boolean inner;

    private FlowMatch(byte[] value, byte[] mask, boolean inner) {
        this.value = value;
        this.mask = mask;
        this.inner = inner;
    }

    /** The same kind with other contents. */
    abstract S with(byte[] newValue, byte[] newMask, boolean newInner);

    /**
     * C's layout of such a header.
     *
     * @param kind without INNER
     * @param sizeBytes of the struct
     * @param filterBytes of the value, and of the mask
     * @param valueAt where the value is in the struct
     * @param maskAt where the mask is
     */
    record Part(FlowSpecType kind, long sizeBytes, long filterBytes, long valueAt, long maskAt) {}

    /** C's layout of this header. */
    abstract Part part();

    /**
     * Ethernet.
     *
     * @return any frame
     */
    public static Ethernet ethernet() {
        return new Ethernet(zeros(IbvFlowEthFilter.SIZE), zeros(IbvFlowEthFilter.SIZE), false);
    }

    /**
     * IPv4.
     *
     * @return any packet
     */
    public static Ipv4 ipv4() {
        return new Ipv4(zeros(IbvFlowIpv4ExtFilter.SIZE), zeros(IbvFlowIpv4ExtFilter.SIZE), false);
    }

    /**
     * IPv6.
     *
     * @return any packet
     */
    public static Ipv6 ipv6() {
        return new Ipv6(zeros(IbvFlowIpv6Filter.SIZE), zeros(IbvFlowIpv6Filter.SIZE), false);
    }

    /**
     * TCP.
     *
     * @return any segment
     */
    public static Ports tcp() {
        return new Ports(Ports.TCP, zeros(IbvFlowTcpUdpFilter.SIZE), zeros(IbvFlowTcpUdpFilter.SIZE), false);
    }

    /**
     * UDP.
     *
     * @return any datagram
     */
    public static Ports udp() {
        return new Ports(Ports.UDP, zeros(IbvFlowTcpUdpFilter.SIZE), zeros(IbvFlowTcpUdpFilter.SIZE), false);
    }

    /**
     * VXLAN.
     *
     * @return any packet
     */
    public static Vxlan vxlan() {
        return new Vxlan(zeros(IbvFlowTunnelFilter.SIZE), zeros(IbvFlowTunnelFilter.SIZE), false);
    }

    /**
     * GRE.
     *
     * @return any packet
     */
    public static Gre gre() {
        return new Gre(zeros(IbvFlowGreFilter.SIZE), zeros(IbvFlowGreFilter.SIZE), false);
    }

    /**
     * MPLS. It stands between the parts whose headers are before and behind it in packets, which are then given in order.
     *
     * @return any packet
     */
    public static Mpls mpls() {
        return new Mpls(zeros(IbvFlowMplsFilter.SIZE), zeros(IbvFlowMplsFilter.SIZE), false);
    }

    /**
     * IPsec's ESP.
     *
     * @return any packet
     */
    public static Esp esp() {
        return new Esp(zeros(IbvFlowEspFilter.SIZE), zeros(IbvFlowEspFilter.SIZE), false);
    }

    /**
     * The same header inside of a tunnel.
     *
     * @return the match
     */
    public final S inner() {
        return with(value, mask, true);
    }

    /**
     * Sets a field of up to four bytes.
     *
     * @param name what it is, for the message of a refusal
     * @param offset in C's filter
     * @param bytes how long it is
     * @param fieldValue what to look for
     * @param fieldMask which bits matter
     */
    final S set(String name, long offset, int bytes, long fieldValue, long fieldMask) {
        long most = (1L << (bytes * Byte.SIZE)) - 1;
        if (fieldValue < 0 || fieldValue > most || fieldMask < 0 || fieldMask > most) {
            throw new IllegalArgumentException(name + " 0x" + Long.toHexString(fieldValue) + " with mask 0x"
                    + Long.toHexString(fieldMask) + " has more than the " + bytes * Byte.SIZE + " bits of the field");
        }
        byte[] valueBytes = new byte[bytes];
        byte[] maskBytes = new byte[bytes];
        for (int i = 0; i < bytes; i++) {
            int shift = (bytes - 1 - i) * Byte.SIZE;
            valueBytes[i] = (byte) (fieldValue >>> shift);
            maskBytes[i] = (byte) (fieldMask >>> shift);
        }
        return set(offset, valueBytes, maskBytes);
    }

    /**
     * Sets a field.
     *
     * @param offset in C's filter
     * @param fieldValue what to look for, in network order
     * @param fieldMask which bits matter
     */
    final S set(long offset, byte[] fieldValue, byte[] fieldMask) {
        byte[] newValue = value.clone();
        byte[] newMask = mask.clone();
        for (int i = 0; i < fieldValue.length; i++) {
            newValue[(int) offset + i] = (byte) (fieldValue[i] & fieldMask[i]);
            newMask[(int) offset + i] = fieldMask[i];
        }
        return with(newValue, newMask, inner);
    }

    /**
     * Sets an IP address.
     *
     * @param offset in C's filter
     * @param address in network order
     * @param prefixBits how many of its bits matter
     */
    final S setAddress(long offset, byte[] address, int prefixBits) {
        Ranges.check("prefixBits", prefixBits, 0, address.length * Byte.SIZE);
        byte[] prefix = new byte[address.length];
        for (int bit = 0; bit < prefixBits; bit++) {
            prefix[bit / Byte.SIZE] |= (byte) (0x80 >>> bit % Byte.SIZE);
        }
        return set(offset, address, prefix);
    }

    /** Whether bytes of the filter matter that come at an offset or behind. */
    final boolean matchesFrom(long offset) {
        for (int i = (int) offset; i < mask.length; i++) {
            if (mask[i] != 0) {
                return true;
            }
        }
        return false;
    }

    /**
     * Writes the value alone, as a header that goes around packets.
     *
     * @param filter memory of {@link #filterBytes()}
     */
    final void writeValue(MemorySegment filter) {
        MemorySegment.copy(value, 0, filter, ValueLayout.JAVA_BYTE, 0, (int) filterBytes());
    }

    /** How long C's filter is. */
    final long filterBytes() {
        return part().filterBytes();
    }

    @Override
    final long sizeBytes() {
        return part().sizeBytes();
    }

    @Override
    final int type() {
        return part().kind().value() | (inner ? FlowSpecType.INNER.value() : 0);
    }

    @Override
    final void writeBody(MemorySegment memory) {
        Part part = part();
        MemorySegment.copy(value, 0, memory, ValueLayout.JAVA_BYTE, part.valueAt(), (int) part.filterBytes());
        MemorySegment.copy(mask, 0, memory, ValueLayout.JAVA_BYTE, part.maskAt(), (int) part.filterBytes());
    }

    @Override
    public final String toString() {
        HexFormat hex = HexFormat.of();
        return (inner ? "inner " : "") + part().kind() + " " + hex.formatHex(value) + "/" + hex.formatHex(mask);
    }

    private static byte[] zeros(long bytes) {
        return new byte[(int) bytes];
    }

    private static final int BYTE_MASK = 0xff;
    private static final int SHORT_MASK = 0xffff;
    private static final long INT_MASK = 0xffffffffL;

    /** An Ethernet header. */
    public static final class Ethernet extends FlowMatch<Ethernet> {
        private static final Part PART = new Part(
                FlowSpecType.ETH, IbvFlowSpecEth.SIZE, IbvFlowEthFilter.SIZE, IbvFlowSpecEth.VAL, IbvFlowSpecEth.MASK);

        private static final byte[] WHOLE_MAC = {-1, -1, -1, -1, -1, -1};

        private Ethernet(byte[] value, byte[] mask, boolean inner) {
            super(value, mask, inner);
        }

        /**
         * The destination.
         *
         * @param mac 6 bytes
         * @return the match
         */
        public Ethernet destination(byte[] mac) {
            return destination(mac, WHOLE_MAC);
        }

        /**
         * The destination, with a mask.
         *
         * @param mac 6 bytes
         * @param macMask which of their bits matter
         * @return the match
         */
        public Ethernet destination(byte[] mac, byte[] macMask) {
            return mac(IbvFlowEthFilter.DST_MAC, mac, macMask);
        }

        /**
         * The source.
         *
         * @param mac 6 bytes
         * @return the match
         */
        public Ethernet source(byte[] mac) {
            return source(mac, WHOLE_MAC);
        }

        /**
         * The source, with a mask.
         *
         * @param mac 6 bytes
         * @param macMask which of their bits matter
         * @return the match
         */
        public Ethernet source(byte[] mac, byte[] macMask) {
            return mac(IbvFlowEthFilter.SRC_MAC, mac, macMask);
        }

        private Ethernet mac(long offset, byte[] mac, byte[] macMask) {
            if (mac.length != EthernetAddress.MAC_BYTES || macMask.length != EthernetAddress.MAC_BYTES) {
                throw new IllegalArgumentException(
                        "a MAC address and its mask have 6 bytes each, not " + mac.length + " and " + macMask.length);
            }
            return set(offset, mac, macMask);
        }

        /**
         * The protocol that it carries, after the last VLAN tag.
         *
         * @param etherType 0 to 0xffff, such as 0x0800 for IPv4
         * @return the match
         */
        public Ethernet etherType(int etherType) {
            return set("etherType", IbvFlowEthFilter.ETHER_TYPE, Short.BYTES, etherType, SHORT_MASK);
        }

        /**
         * Its VLAN, whatever its priority.
         *
         * @param vlan 0 to 4095
         * @return the match
         */
        public Ethernet vlan(int vlan) {
            Ranges.check("vlan", vlan, 0, EthernetAddress.MAX_VLAN);
            return vlanTag(vlan, EthernetAddress.MAX_VLAN);
        }

        /**
         * Its VLAN tag, in part.
         *
         * @param tag priority (3 bits), DEI (1 bit), VLAN (12 bits)
         * @param tagMask which of its bits matter
         * @return the match
         */
        public Ethernet vlanTag(int tag, int tagMask) {
            return set("vlanTag", IbvFlowEthFilter.VLAN_TAG, Short.BYTES, tag, tagMask);
        }

        @Override
        Ethernet with(byte[] newValue, byte[] newMask, boolean newInner) {
            return new Ethernet(newValue, newMask, newInner);
        }

        @Override
        Part part() {
            return PART;
        }
    }

    /** An IPv4 header. If more than addresses matter, it goes to the device as {@code IBV_FLOW_SPEC_IPV4_EXT}. */
    public static final class Ipv4 extends FlowMatch<Ipv4> {
        private static final Part PLAIN = new Part(
                FlowSpecType.IPV4,
                IbvFlowSpecIpv4.SIZE,
                IbvFlowIpv4Filter.SIZE,
                IbvFlowSpecIpv4.VAL,
                IbvFlowSpecIpv4.MASK);
        private static final Part EXTENDED = new Part(
                FlowSpecType.IPV4_EXT,
                IbvFlowSpecIpv4Ext.SIZE,
                IbvFlowIpv4ExtFilter.SIZE,
                IbvFlowSpecIpv4Ext.VAL,
                IbvFlowSpecIpv4Ext.MASK);

        private Ipv4(byte[] value, byte[] mask, boolean inner) {
            super(value, mask, inner);
        }

        /**
         * The source.
         *
         * @param address of a host or network
         * @param prefixBits how many of its bits matter, 0 to 32
         * @return the match
         */
        public Ipv4 source(Inet4Address address, int prefixBits) {
            return setAddress(IbvFlowIpv4ExtFilter.SRC_IP, address.getAddress(), prefixBits);
        }

        /**
         * The destination.
         *
         * @param address of a host or network
         * @param prefixBits how many of its bits matter, 0 to 32
         * @return the match
         */
        public Ipv4 destination(Inet4Address address, int prefixBits) {
            return setAddress(IbvFlowIpv4ExtFilter.DST_IP, address.getAddress(), prefixBits);
        }

        /**
         * The protocol that it carries.
         *
         * @param protocol 0 to 255, such as 17 for UDP
         * @return the match
         */
        public Ipv4 protocol(int protocol) {
            return set("protocol", IbvFlowIpv4ExtFilter.PROTO, Byte.BYTES, protocol, BYTE_MASK);
        }

        /**
         * Its type of service: DSCP and ECN.
         *
         * @param typeOfService 0 to 255
         * @return the match
         */
        public Ipv4 typeOfService(int typeOfService) {
            return set("typeOfService", IbvFlowIpv4ExtFilter.TOS, Byte.BYTES, typeOfService, BYTE_MASK);
        }

        /**
         * The number of hops that it may still take.
         *
         * @param timeToLive 0 to 255
         * @return the match
         */
        public Ipv4 timeToLive(int timeToLive) {
            return set("timeToLive", IbvFlowIpv4ExtFilter.TTL, Byte.BYTES, timeToLive, BYTE_MASK);
        }

        /**
         * Its fragmentation flags.
         *
         * @param flags 0 to 255
         * @return the match
         */
        public Ipv4 flags(int flags) {
            return set("flags", IbvFlowIpv4ExtFilter.FLAGS, Byte.BYTES, flags, BYTE_MASK);
        }

        @Override
        Ipv4 with(byte[] newValue, byte[] newMask, boolean newInner) {
            return new Ipv4(newValue, newMask, newInner);
        }

        @Override
        Part part() {
            return matchesFrom(IbvFlowIpv4ExtFilter.PROTO) ? EXTENDED : PLAIN;
        }
    }

    /** An IPv6 header. */
    public static final class Ipv6 extends FlowMatch<Ipv6> {
        private static final Part PART = new Part(
                FlowSpecType.IPV6,
                IbvFlowSpecIpv6.SIZE,
                IbvFlowIpv6Filter.SIZE,
                IbvFlowSpecIpv6.VAL,
                IbvFlowSpecIpv6.MASK);

        private Ipv6(byte[] value, byte[] mask, boolean inner) {
            super(value, mask, inner);
        }

        /**
         * The source.
         *
         * @param address of a host or network
         * @param prefixBits how many of its bits matter, 0 to 128
         * @return the match
         */
        public Ipv6 source(Inet6Address address, int prefixBits) {
            return setAddress(IbvFlowIpv6Filter.SRC_IP, address.getAddress(), prefixBits);
        }

        /**
         * The destination.
         *
         * @param address of a host or network
         * @param prefixBits how many of its bits matter, 0 to 128
         * @return the match
         */
        public Ipv6 destination(Inet6Address address, int prefixBits) {
            return setAddress(IbvFlowIpv6Filter.DST_IP, address.getAddress(), prefixBits);
        }

        /**
         * Its flow label.
         *
         * @param flowLabel 20 bits
         * @return the match
         */
        public Ipv6 flowLabel(int flowLabel) {
            Ranges.check("flowLabel", flowLabel, 0, FLOW_LABEL_MASK);
            return set("flowLabel", IbvFlowIpv6Filter.FLOW_LABEL, Integer.BYTES, flowLabel, FLOW_LABEL_MASK);
        }

        private static final int FLOW_LABEL_MASK = 0xfffff;

        /**
         * The protocol that it carries.
         *
         * @param nextHeader 0 to 255, such as 17 for UDP
         * @return the match
         */
        public Ipv6 nextHeader(int nextHeader) {
            return set("nextHeader", IbvFlowIpv6Filter.NEXT_HDR, Byte.BYTES, nextHeader, BYTE_MASK);
        }

        /**
         * Its traffic class: DSCP and ECN.
         *
         * @param trafficClass 0 to 255
         * @return the match
         */
        public Ipv6 trafficClass(int trafficClass) {
            return set("trafficClass", IbvFlowIpv6Filter.TRAFFIC_CLASS, Byte.BYTES, trafficClass, BYTE_MASK);
        }

        /**
         * The number of hops that it may still take.
         *
         * @param hopLimit 0 to 255
         * @return the match
         */
        public Ipv6 hopLimit(int hopLimit) {
            return set("hopLimit", IbvFlowIpv6Filter.HOP_LIMIT, Byte.BYTES, hopLimit, BYTE_MASK);
        }

        @Override
        Ipv6 with(byte[] newValue, byte[] newMask, boolean newInner) {
            return new Ipv6(newValue, newMask, newInner);
        }

        @Override
        Part part() {
            return PART;
        }
    }

    /** A TCP or UDP header. */
    public static final class Ports extends FlowMatch<Ports> {
        private static final Part TCP = part(FlowSpecType.TCP);
        private static final Part UDP = part(FlowSpecType.UDP);

        private final Part part;

        private Ports(Part part, byte[] value, byte[] mask, boolean inner) {
            super(value, mask, inner);
            this.part = part;
        }

        private static Part part(FlowSpecType kind) {
            return new Part(
                    kind,
                    IbvFlowSpecTcpUdp.SIZE,
                    IbvFlowTcpUdpFilter.SIZE,
                    IbvFlowSpecTcpUdp.VAL,
                    IbvFlowSpecTcpUdp.MASK);
        }

        /**
         * The destination.
         *
         * @param port 0 to 65535
         * @return the match
         */
        public Ports destinationPort(int port) {
            return destinationPort(port, SHORT_MASK);
        }

        /**
         * The destination, with a mask.
         *
         * @param port 0 to 65535
         * @param portMask which of its bits matter
         * @return the match
         */
        public Ports destinationPort(int port, int portMask) {
            return set("destinationPort", IbvFlowTcpUdpFilter.DST_PORT, Short.BYTES, port, portMask);
        }

        /**
         * The source.
         *
         * @param port 0 to 65535
         * @return the match
         */
        public Ports sourcePort(int port) {
            return sourcePort(port, SHORT_MASK);
        }

        /**
         * The source, with a mask.
         *
         * @param port 0 to 65535
         * @param portMask which of its bits matter
         * @return the match
         */
        public Ports sourcePort(int port, int portMask) {
            return set("sourcePort", IbvFlowTcpUdpFilter.SRC_PORT, Short.BYTES, port, portMask);
        }

        @Override
        Ports with(byte[] newValue, byte[] newMask, boolean newInner) {
            return new Ports(part, newValue, newMask, newInner);
        }

        @Override
        Part part() {
            return part;
        }
    }

    /** A VXLAN header. */
    public static final class Vxlan extends FlowMatch<Vxlan> {
        private static final Part PART = new Part(
                FlowSpecType.VXLAN_TUNNEL,
                IbvFlowSpecTunnel.SIZE,
                IbvFlowTunnelFilter.SIZE,
                IbvFlowSpecTunnel.VAL,
                IbvFlowSpecTunnel.MASK);

        private static final int NETWORK_MASK = 0xffffff;

        private Vxlan(byte[] value, byte[] mask, boolean inner) {
            super(value, mask, inner);
        }

        /**
         * Its network identifier.
         *
         * @param network 24 bits
         * @return the match
         */
        public Vxlan network(int network) {
            Ranges.check("network", network, 0, NETWORK_MASK);
            return set("network", IbvFlowTunnelFilter.TUNNEL_ID, Integer.BYTES, network, NETWORK_MASK);
        }

        @Override
        Vxlan with(byte[] newValue, byte[] newMask, boolean newInner) {
            return new Vxlan(newValue, newMask, newInner);
        }

        @Override
        Part part() {
            return PART;
        }
    }

    /** A GRE header. */
    public static final class Gre extends FlowMatch<Gre> {
        private static final Part PART = new Part(
                FlowSpecType.GRE, IbvFlowSpecGre.SIZE, IbvFlowGreFilter.SIZE, IbvFlowSpecGre.VAL, IbvFlowSpecGre.MASK);

        private Gre(byte[] value, byte[] mask, boolean inner) {
            super(value, mask, inner);
        }

        /**
         * Its first 16 bits: checksum, key and sequence number present (0x8000, 0x2000, 0x1000), and the version.
         *
         * @param bits 0 to 0xffff
         * @param bitsMask which of them matter
         * @return the match
         */
        public Gre flagsAndVersion(int bits, int bitsMask) {
            return set("flagsAndVersion", IbvFlowGreFilter.C_KS_RES0_VER, Short.BYTES, bits, bitsMask);
        }

        /**
         * The protocol that it carries.
         *
         * @param etherType 0 to 0xffff
         * @return the match
         */
        public Gre protocol(int etherType) {
            return set("protocol", IbvFlowGreFilter.PROTOCOL, Short.BYTES, etherType, SHORT_MASK);
        }

        /**
         * Its key.
         *
         * @param key 32 bits
         * @return the match
         */
        public Gre key(int key) {
            return set("key", IbvFlowGreFilter.KEY, Integer.BYTES, Integer.toUnsignedLong(key), INT_MASK);
        }

        @Override
        Gre with(byte[] newValue, byte[] newMask, boolean newInner) {
            return new Gre(newValue, newMask, newInner);
        }

        @Override
        Part part() {
            return PART;
        }
    }

    /** An MPLS label. */
    public static final class Mpls extends FlowMatch<Mpls> {
        private static final Part PART = new Part(
                FlowSpecType.MPLS,
                IbvFlowSpecMpls.SIZE,
                IbvFlowMplsFilter.SIZE,
                IbvFlowSpecMpls.VAL,
                IbvFlowSpecMpls.MASK);

        private static final int LABEL_MAX = 0xfffff;
        private static final int LABEL_SHIFT = 12;

        private Mpls(byte[] value, byte[] mask, boolean inner) {
            super(value, mask, inner);
        }

        /**
         * The label's value, whatever its traffic class and time to live.
         *
         * @param label 20 bits
         * @return the match
         */
        public Mpls label(int label) {
            Ranges.check("label", label, 0, LABEL_MAX);
            return entry(label << LABEL_SHIFT, LABEL_MAX << LABEL_SHIFT);
        }

        /**
         * The whole entry, in part.
         *
         * @param entry label (20 bits), traffic class (3 bits), bottom of stack (1 bit), time to live (8 bits)
         * @param entryMask which of its bits matter
         * @return the match
         */
        public Mpls entry(int entry, int entryMask) {
            return set(
                    "entry",
                    IbvFlowMplsFilter.LABEL,
                    Integer.BYTES,
                    Integer.toUnsignedLong(entry),
                    Integer.toUnsignedLong(entryMask));
        }

        @Override
        Mpls with(byte[] newValue, byte[] newMask, boolean newInner) {
            return new Mpls(newValue, newMask, newInner);
        }

        @Override
        Part part() {
            return PART;
        }
    }

    /** An ESP header. */
    public static final class Esp extends FlowMatch<Esp> {
        private static final Part PART = new Part(
                FlowSpecType.ESP, IbvFlowSpecEsp.SIZE, IbvFlowEspFilter.SIZE, IbvFlowSpecEsp.VAL, IbvFlowSpecEsp.MASK);

        private Esp(byte[] value, byte[] mask, boolean inner) {
            super(value, mask, inner);
        }

        /**
         * Its security parameters index.
         *
         * @param index 32 bits
         * @return the match
         */
        public Esp securityParametersIndex(int index) {
            return set(
                    "securityParametersIndex",
                    IbvFlowEspFilter.SPI,
                    Integer.BYTES,
                    Integer.toUnsignedLong(index),
                    INT_MASK);
        }

        /**
         * Its sequence number.
         *
         * @param number 32 bits
         * @return the match
         */
        public Esp sequenceNumber(int number) {
            return set("sequenceNumber", IbvFlowEspFilter.SEQ, Integer.BYTES, Integer.toUnsignedLong(number), INT_MASK);
        }

        @Override
        Esp with(byte[] newValue, byte[] newMask, boolean newInner) {
            return new Esp(newValue, newMask, newInner);
        }

        @Override
        Part part() {
            return PART;
        }
    }
}
