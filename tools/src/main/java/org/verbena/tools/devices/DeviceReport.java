package org.verbena.tools.devices;

import static java.lang.String.format;
import static java.util.Locale.ROOT;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.verbena.verbs.Context;
import org.verbena.verbs.Device;
import org.verbena.verbs.address.Gid;
import org.verbena.verbs.address.GidEntry;
import org.verbena.verbs.address.GidType;
import org.verbena.verbs.device.AtomicCapability;
import org.verbena.verbs.device.DeviceAttributes;
import org.verbena.verbs.device.DeviceCapability;
import org.verbena.verbs.device.ExtendedDeviceAttributes;
import org.verbena.verbs.device.LinkLayer;
import org.verbena.verbs.device.Mtu;
import org.verbena.verbs.device.PortAttributes;
import org.verbena.verbs.device.TransportType;
import org.verbena.verbs.queue.QueuePairType;

/**
 * A device's attributes in the lines of {@code ibv_devinfo -v}: same names, same values, same order.
 *
 * <p>Source: ibv_devinfo(1)
 */
final class DeviceReport {
    private static final int NAME_COLUMNS = 32;

    /** {@code IBV_ODP_SUPPORT_*}, from bit 0. */
    private static final String[] ON_DEMAND_OPERATIONS = {
        "SUPPORT_SEND", "SUPPORT_RECV", "SUPPORT_WRITE", "SUPPORT_READ", "SUPPORT_ATOMIC", "SUPPORT_SRQ"
    };

    /** {@code IBV_RAW_PACKET_CAP_*}, from bit 0. */
    private static final String[] RAW_PACKET_OFFLOADS = {
        "C-VLAN stripping offload", "Scatter FCS offload", "IP csum offload", "Delay drop"
    };

    /** {@code IBV_DEVICE_RAW_SCATTER_FCS}. */
    private static final long RAW_SCATTER_FCS = 1L << 34;

    /** {@code IBV_DEVICE_PCI_WRITE_END_PADDING}. */
    private static final long PCI_WRITE_END_PADDING = 1L << 36;

    private static final long LATER_FLAGS = 0xffffffff00000000L;
    private static final int GROUPS_OF_A_GID = 8;

    private final PrintWriter out;

    DeviceReport(PrintWriter out) {
        this.out = out;
    }

    /** Prints a device and its ports. */
    void print(Context context) {
        Device device = context.device();
        ExtendedDeviceAttributes extended = context.queryDeviceExtended();
        DeviceAttributes basic = extended.basic();
        out.println("hca_id: " + device.name());
        printIdentity(device, basic);
        printLimits(basic);
        printExtensions(extended);
        line(1, "num_comp_vectors", context.completionVectors());
        List<GidEntry> gids = context.queryGids();
        for (int port = 1; port <= basic.ports(); port++) {
            printPort(device, port, context.queryPort(port), gids);
        }
        out.println();
    }

    private void printIdentity(Device device, DeviceAttributes basic) {
        line(
                1,
                "transport",
                transport(device.transportType()) + " ("
                        + device.transportType().value() + ")");
        if (!basic.firmwareVersion().isEmpty()) {
            line(1, "fw_ver", basic.firmwareVersion());
        }
        line(1, "node_guid", guid(basic.nodeGuid()));
        line(1, "sys_image_guid", guid(basic.systemImageGuid()));
        line(1, "vendor_id", format(ROOT, "0x%04x", basic.vendorId()));
        line(1, "vendor_part_id", basic.vendorPartId());
        line(1, "hw_ver", format(ROOT, "0x%X", basic.hardwareVersion()));
        String board = board(device);
        if (!board.isEmpty()) {
            line(1, "board_id", board);
        }
        line(1, "phys_port_cnt", basic.ports());
    }

    private void printLimits(DeviceAttributes basic) {
        line(1, "max_mr_size", format(ROOT, "0x%x", basic.maxRegionBytes()));
        line(1, "page_size_cap", format(ROOT, "0x%x", basic.pageSizes()));
        line(1, "max_qp", basic.maxQueuePairs());
        line(1, "max_qp_wr", basic.maxWorkRequests());
        line(1, "device_cap_flags", format(ROOT, "0x%08x", basic.capabilityFlags()));
        int known = 0;
        for (DeviceCapability capability : DeviceCapability.values()) {
            known |= capability.value();
            if (basic.has(capability)) {
                flag(capability.name());
            }
        }
        unknown(Integer.toUnsignedLong(basic.capabilityFlags() & ~known));
        line(1, "max_sge", basic.maxSges());
        line(1, "max_sge_rd", basic.maxReadSges());
        line(1, "max_cq", basic.maxCompletionQueues());
        line(1, "max_cqe", basic.maxCompletionQueueEntries());
        line(1, "max_mr", basic.maxRegions());
        line(1, "max_pd", basic.maxProtectionDomains());
        line(1, "max_qp_rd_atom", basic.maxReadsAsTarget());
        line(1, "max_ee_rd_atom", basic.maxEndToEndReadsAsTarget());
        line(1, "max_res_rd_atom", basic.maxReadsAsTargetTotal());
        line(1, "max_qp_init_rd_atom", basic.maxReadsAsInitiator());
        line(1, "max_ee_init_rd_atom", basic.maxEndToEndReadsAsInitiator());
        line(
                1,
                "atomic_cap",
                basic.atomics() == AtomicCapability.UNKNOWN
                        ? "invalid atomic capability"
                        : "ATOMIC_" + basic.atomics() + " (" + basic.atomics().value() + ")");
        line(1, "max_ee", basic.maxEndToEndContexts());
        line(1, "max_rdd", basic.maxReliableDatagramDomains());
        line(1, "max_mw", basic.maxWindows());
        line(1, "max_raw_ipv6_qp", basic.maxRawIpv6QueuePairs());
        line(1, "max_raw_ethy_qp", basic.maxRawEthernetQueuePairs());
        line(1, "max_mcast_grp", basic.maxMulticastGroups());
        line(1, "max_mcast_qp_attach", basic.maxQueuePairsPerMulticastGroup());
        line(1, "max_total_mcast_qp_attach", basic.maxMulticastAttachments());
        line(1, "max_ah", basic.maxAddressHandles());
        line(1, "max_fmr", basic.maxFastRegions());
        if (basic.maxFastRegions() != 0) {
            line(1, "max_map_per_fmr", basic.maxMapsPerFastRegion());
        }
        line(1, "max_srq", basic.maxSharedReceiveQueues());
        if (basic.maxSharedReceiveQueues() != 0) {
            line(1, "max_srq_wr", basic.maxSharedReceives());
            line(1, "max_srq_sge", basic.maxSharedReceiveSges());
        }
        line(1, "max_pkeys", basic.maxPkeys());
        line(1, "local_ca_ack_delay", basic.localAckDelay());
    }

    private void printExtensions(ExtendedDeviceAttributes extended) {
        title(1, "general_odp_caps");
        long general = extended.generalOdp();
        flags(general, "ODP_SUPPORT", "ODP_SUPPORT_IMPLICIT");
        onDemand("rc_odp_caps", extended.reliableOdp());
        onDemand("uc_odp_caps", extended.unreliableOdp());
        onDemand("ud_odp_caps", extended.datagramOdp());
        onDemand("xrc_odp_caps", extended.xrcOdp());
        if (extended.completionTimestampMask() != 0) {
            line(1, "completion timestamp_mask", format(ROOT, "0x%016x", extended.completionTimestampMask()));
        } else {
            remark("completion_timestamp_mask not supported");
        }
        if (extended.clockKilohertz() != 0) {
            line(1, "hca_core_clock", Long.toUnsignedString(extended.clockKilohertz()) + "kHZ");
        } else {
            remark("core clock not supported");
        }
        if (extended.rawPacketCapabilities() != 0) {
            title(1, "raw packet caps");
            for (int bit = 0; bit < RAW_PACKET_OFFLOADS.length; bit++) {
                if ((extended.rawPacketCapabilities() & 1 << bit) != 0) {
                    flag(RAW_PACKET_OFFLOADS[bit]);
                }
            }
        }
        line(1, "device_cap_flags_ex", format(ROOT, "0x%X", extended.capabilityFlags()));
        long later = extended.capabilityFlags() & LATER_FLAGS;
        if ((later & RAW_SCATTER_FCS) != 0) {
            flag("RAW_SCATTER_FCS");
        }
        if ((later & PCI_WRITE_END_PADDING) != 0) {
            flag("PCI_WRITE_END_PADDING");
        }
        unknown(later & ~(RAW_SCATTER_FCS | PCI_WRITE_END_PADDING));
        title(1, "tso_caps");
        line(2, "max_tso", extended.maxTsoBytes());
        if (extended.maxTsoBytes() != 0) {
            queuePairTypes(extended.tsoTypes());
        }
        title(1, "rss_caps");
        line(2, "max_rwq_indirection_tables", Integer.toUnsignedString(extended.maxIndirectionTables()));
        line(2, "max_rwq_indirection_table_size", Integer.toUnsignedString(extended.maxIndirectionTableEntries()));
        line(2, "rx_hash_function", format(ROOT, "0x%x", extended.hashFunctions()));
        line(2, "rx_hash_fields_mask", format(ROOT, "0x%X", extended.hashFields()));
        if (extended.rssTypes() != 0) {
            queuePairTypes(extended.rssTypes());
        }
        line(1, "max_wq_type_rq", Integer.toUnsignedString(extended.maxReceiveWorkQueues()));
        title(1, "packet_pacing_caps");
        line(2, "qp_rate_limit_min", Integer.toUnsignedString(extended.minRateKilobits()) + "kbps");
        line(2, "qp_rate_limit_max", Integer.toUnsignedString(extended.maxRateKilobits()) + "kbps");
        if (extended.maxRateKilobits() != 0) {
            queuePairTypes(extended.rateLimitTypes());
        }
        printTagMatching(extended);
        if (extended.maxModerationCount() != 0 && extended.maxModerationMicros() != 0) {
            title(1, "cq moderation caps");
            line(2, "max_cq_count", extended.maxModerationCount());
            line(2, "max_cq_period", extended.maxModerationMicros() + " us");
        }
        if (extended.maxDeviceMemoryBytes() != 0) {
            line(
                    1,
                    "maximum available device memory",
                    Long.toUnsignedString(extended.maxDeviceMemoryBytes()) + "Bytes");
        }
    }

    private void printTagMatching(ExtendedDeviceAttributes extended) {
        if (extended.maxTags() == 0) {
            remark("tag matching not supported");
            return;
        }
        line(1, "max_rndv_hdr_size", Integer.toUnsignedString(extended.maxRendezvousHeaderBytes()));
        line(1, "max_num_tags", Integer.toUnsignedString(extended.maxTags()));
        line(1, "max_ops", Integer.toUnsignedString(extended.maxTagOperations()));
        line(1, "max_sge", Integer.toUnsignedString(extended.maxTagSges()));
        title(1, "flags");
        if ((extended.tagMatchingFlags() & 1) != 0) {
            flag("IBV_TM_CAP_RC");
        }
    }

    private void printPort(Device device, int number, PortAttributes port, List<GidEntry> gids) {
        line(2, "port", number);
        line(3, "state", "PORT_" + port.state() + " (" + port.state().value() + ")");
        line(3, "max_mtu", mtu(port.maxMtu()));
        line(3, "active_mtu", mtu(port.activeMtu()));
        line(3, "sm_lid", port.subnetManagerLid());
        line(3, "port_lid", port.lid());
        line(3, "port_lmc", format(ROOT, "0x%02x", port.lidMaskBits()));
        line(3, "link_layer", linkLayer(port.linkLayer()));
        line(3, "max_msg_sz", format(ROOT, "0x%x", port.maxMessageBytes()));
        line(3, "port_cap_flags", format(ROOT, "0x%08x", port.capabilityFlags()));
        line(3, "port_cap_flags2", format(ROOT, "0x%04x", port.capabilityFlags2()));
        line(3, "max_vl_num", virtualLanes(port.maxVirtualLanes()) + " (" + port.maxVirtualLanes() + ")");
        line(3, "bad_pkey_cntr", format(ROOT, "0x%x", port.badPkeyCount()));
        line(3, "qkey_viol_cntr", format(ROOT, "0x%x", port.qkeyViolationCount()));
        line(3, "sm_sl", port.subnetManagerServiceLevel());
        line(3, "pkey_tbl_len", port.pkeyTableEntries());
        line(3, "gid_tbl_len", port.gidTableEntries());
        line(3, "subnet_timeout", port.subnetTimeout());
        line(3, "init_type_reply", port.initTypeReply());
        line(
                3,
                "active_width",
                (port.lanes() == 0 ? "invalid width" : port.lanes()) + "X (" + port.activeWidth() + ")");
        line(
                3,
                "active_speed",
                (port.gigabitsPerSecondPerLane() == 0
                                ? "invalid speed"
                                : format(ROOT, "%.1f Gbps", port.gigabitsPerSecondPerLane()))
                        + " (" + port.activeSpeed() + ")");
        if (device.transportType() == TransportType.IB) {
            line(3, "phys_state", physicalState(port.physicalState()) + " (" + port.physicalState() + ")");
        }
        for (GidEntry gid : gids) {
            // As in C, an entry without an interface id is no GID: iWARP devices put their MAC address before it.
            if (gid.port() == number && gid.gid().interfaceId() != 0) {
                boolean ethernet = port.linkLayer() == LinkLayer.ETHERNET;
                line(
                        3,
                        format(ROOT, "GID[%3d]", gid.index()),
                        (gid.type() == GidType.ROCE_V2 ? shortText(gid.gid()) : gid.gid())
                                + (ethernet ? ", " + gidType(gid.type()) : ""));
            }
        }
    }

    /** Only sysfs has it; software devices have none. */
    private static String board(Device device) {
        try {
            return Files.readString(Path.of(device.sysfsPath(), "board_id")).strip();
        } catch (IOException none) {
            return "";
        }
    }

    /** Formats as inet_ntop(3): without the longest run of zero groups, and mapped IPv4 addresses in their own form. */
    static String shortText(Gid gid) {
        if (gid.subnetPrefix() == 0 && gid.interfaceId() >>> 32 == 0xffff) {
            return "::ffff:" + gid.toInetAddress().getHostAddress();
        }
        int[] groups = new int[GROUPS_OF_A_GID];
        byte[] bytes = gid.toBytes();
        for (int i = 0; i < groups.length; i++) {
            groups[i] = (bytes[2 * i] & 0xff) << 8 | (bytes[2 * i + 1] & 0xff);
        }
        int longestAt = -1;
        int longest = 1; // a single group stays
        for (int begin = 0; begin < groups.length; begin++) {
            int end = begin;
            while (end < groups.length && groups[end] == 0) {
                end++;
            }
            if (end - begin > longest) {
                longestAt = begin;
                longest = end - begin;
            }
        }
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < groups.length; i++) {
            if (i == longestAt) {
                text.append("::");
                i += longest - 1;
            } else {
                boolean separated = text.isEmpty() || text.charAt(text.length() - 1) == ':';
                text.append(separated ? "" : ":").append(Integer.toHexString(groups[i]));
            }
        }
        return text.toString();
    }

    private static String guid(long guid) {
        return format(
                ROOT, "%04x:%04x:%04x:%04x", guid >>> 48, guid >>> 32 & 0xffff, guid >>> 16 & 0xffff, guid & 0xffff);
    }

    private static String transport(TransportType type) {
        return switch (type) {
            case IB -> "InfiniBand";
            case IWARP -> "iWARP";
            case USNIC -> "usNIC";
            case USNIC_UDP -> "usNIC UDP";
            case UNSPECIFIED -> "unspecified";
            case UNKNOWN -> "invalid transport";
        };
    }

    private static String linkLayer(LinkLayer layer) {
        return switch (layer) {
            case UNSPECIFIED -> "Unspecified";
            case INFINIBAND -> "InfiniBand";
            case ETHERNET -> "Ethernet";
            case UNKNOWN -> "Unknown";
        };
    }

    private static String gidType(GidType type) {
        return switch (type) {
            case IB, ROCE_V1 -> "RoCE v1";
            case ROCE_V2 -> "RoCE v2";
            case UNKNOWN -> "Invalid gid type";
        };
    }

    private static String mtu(Mtu mtu) {
        return mtu.bytes() + " (" + mtu.value() + ")";
    }

    private static String virtualLanes(int encoded) {
        return switch (encoded) {
            case 1 -> "1";
            case 2 -> "2";
            case 3 -> "4";
            case 4 -> "8";
            case 5 -> "15";
            default -> "invalid value";
        };
    }

    private static String physicalState(int state) {
        return switch (state) {
            case 1 -> "SLEEP";
            case 2 -> "POLLING";
            case 3 -> "DISABLED";
            case 4 -> "PORT_CONFIGURATION TRAINNING"; // as C spells it
            case 5 -> "LINK_UP";
            case 6 -> "LINK_ERROR_RECOVERY";
            case 7 -> "PHY TEST";
            default -> "invalid physical state";
        };
    }

    private void onDemand(String name, int operations) {
        title(1, name);
        if (operations == 0) {
            flag("NO SUPPORT");
        } else {
            flags(Integer.toUnsignedLong(operations), ON_DEMAND_OPERATIONS);
        }
    }

    private void queuePairTypes(int types) {
        title(2, "supported_qp");
        int raw = 1 << QueuePairType.RAW_PACKET.value();
        int datagrams = 1 << QueuePairType.UD.value();
        if ((types & raw) != 0) {
            flag("SUPPORT_RAW_PACKET");
        }
        if ((types & datagrams) != 0) {
            flag("SUPPORT_UD");
        }
        unknown(Integer.toUnsignedLong(types & ~(raw | datagrams)));
    }

    /** Names bits from bit 0. */
    private void flags(long bits, String... names) {
        for (int bit = 0; bit < names.length; bit++) {
            if ((bits & 1L << bit) != 0) {
                flag(names[bit]);
            }
        }
        unknown(bits >>> names.length << names.length);
    }

    private void unknown(long bits) {
        if (bits != 0) {
            flag(format(ROOT, "Unknown flags: 0x%X", bits));
        }
    }

    private void title(int depth, String name) {
        out.println("  ".repeat(depth) + name + ":");
    }

    private void line(int depth, String name, Object value) {
        out.println(format(ROOT, "%-" + NAME_COLUMNS + "s", "  ".repeat(depth) + name + ":") + " " + value);
    }

    private void flag(String name) {
        out.println(" ".repeat(NAME_COLUMNS + 1) + name);
    }

    private void remark(String text) {
        out.println("  " + text);
    }
}
