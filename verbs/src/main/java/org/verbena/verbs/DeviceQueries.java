package org.verbena.verbs;

import java.lang.foreign.MemorySegment;
import org.verbena.verbs.address.GidEntry;
import org.verbena.verbs.address.GidType;
import org.verbena.verbs.device.AtomicCapability;
import org.verbena.verbs.device.DeviceAttributes;
import org.verbena.verbs.device.DeviceCapability;
import org.verbena.verbs.device.ExtendedDeviceAttributes;
import org.verbena.verbs.device.LinkLayer;
import org.verbena.verbs.device.Mtu;
import org.verbena.verbs.device.PortAttributes;
import org.verbena.verbs.device.PortState;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.IbvCqModerationCaps;
import org.verbena.verbs.ffm.IbvDeviceAttr;
import org.verbena.verbs.ffm.IbvDeviceAttrEx;
import org.verbena.verbs.ffm.IbvGidEntry;
import org.verbena.verbs.ffm.IbvOdpCaps;
import org.verbena.verbs.ffm.IbvPacketPacingCaps;
import org.verbena.verbs.ffm.IbvPciAtomicCaps;
import org.verbena.verbs.ffm.IbvPortAttr;
import org.verbena.verbs.ffm.IbvRssCaps;
import org.verbena.verbs.ffm.IbvTmCaps;
import org.verbena.verbs.ffm.IbvTsoCaps;
import org.verbena.verbs.ffm.NativeConstant;
import org.verbena.verbs.ffm.Pointers;

/** Reads what libibverbs reports about a device, its ports and their GIDs. */
final class DeviceQueries {
    /** {@code ibv_device_attr.fw_ver}. */
    private static final int FIRMWARE_BYTES = 64;

    private DeviceQueries() {}

    static DeviceAttributes device(MemorySegment attr) {
        return new DeviceAttributes(
                Pointers.readString(attr, IbvDeviceAttr.FW_VER, FIRMWARE_BYTES),
                Pointers.bigEndian(attr.get(CStruct.U64, IbvDeviceAttr.NODE_GUID)),
                Pointers.bigEndian(attr.get(CStruct.U64, IbvDeviceAttr.SYS_IMAGE_GUID)),
                attr.get(CStruct.U64, IbvDeviceAttr.MAX_MR_SIZE),
                attr.get(CStruct.U64, IbvDeviceAttr.PAGE_SIZE_CAP),
                attr.get(CStruct.U32, IbvDeviceAttr.VENDOR_ID),
                attr.get(CStruct.U32, IbvDeviceAttr.VENDOR_PART_ID),
                attr.get(CStruct.U32, IbvDeviceAttr.HW_VER),
                attr.get(CStruct.I32, IbvDeviceAttr.MAX_QP),
                attr.get(CStruct.I32, IbvDeviceAttr.MAX_QP_WR),
                NativeConstant.set(DeviceCapability.class, attr.get(CStruct.U32, IbvDeviceAttr.DEVICE_CAP_FLAGS)),
                attr.get(CStruct.I32, IbvDeviceAttr.MAX_SGE),
                attr.get(CStruct.I32, IbvDeviceAttr.MAX_SGE_RD),
                attr.get(CStruct.I32, IbvDeviceAttr.MAX_CQ),
                attr.get(CStruct.I32, IbvDeviceAttr.MAX_CQE),
                attr.get(CStruct.I32, IbvDeviceAttr.MAX_MR),
                attr.get(CStruct.I32, IbvDeviceAttr.MAX_PD),
                attr.get(CStruct.I32, IbvDeviceAttr.MAX_QP_RD_ATOM),
                attr.get(CStruct.I32, IbvDeviceAttr.MAX_RES_RD_ATOM),
                attr.get(CStruct.I32, IbvDeviceAttr.MAX_QP_INIT_RD_ATOM),
                AtomicCapability.of(attr.get(CStruct.ENUM, IbvDeviceAttr.ATOMIC_CAP)),
                attr.get(CStruct.I32, IbvDeviceAttr.MAX_MW),
                attr.get(CStruct.I32, IbvDeviceAttr.MAX_RAW_ETHY_QP),
                attr.get(CStruct.I32, IbvDeviceAttr.MAX_MCAST_GRP),
                attr.get(CStruct.I32, IbvDeviceAttr.MAX_MCAST_QP_ATTACH),
                attr.get(CStruct.I32, IbvDeviceAttr.MAX_TOTAL_MCAST_QP_ATTACH),
                attr.get(CStruct.I32, IbvDeviceAttr.MAX_AH),
                attr.get(CStruct.I32, IbvDeviceAttr.MAX_SRQ),
                attr.get(CStruct.I32, IbvDeviceAttr.MAX_SRQ_WR),
                attr.get(CStruct.I32, IbvDeviceAttr.MAX_SRQ_SGE),
                Short.toUnsignedInt(attr.get(CStruct.U16, IbvDeviceAttr.MAX_PKEYS)),
                Byte.toUnsignedInt(attr.get(CStruct.U8, IbvDeviceAttr.LOCAL_CA_ACK_DELAY)),
                Byte.toUnsignedInt(attr.get(CStruct.U8, IbvDeviceAttr.PHYS_PORT_CNT)),
                attr.get(CStruct.U32, IbvDeviceAttr.DEVICE_CAP_FLAGS),
                attr.get(CStruct.I32, IbvDeviceAttr.MAX_EE),
                attr.get(CStruct.I32, IbvDeviceAttr.MAX_EE_RD_ATOM),
                attr.get(CStruct.I32, IbvDeviceAttr.MAX_EE_INIT_RD_ATOM),
                attr.get(CStruct.I32, IbvDeviceAttr.MAX_RDD),
                attr.get(CStruct.I32, IbvDeviceAttr.MAX_RAW_IPV6_QP),
                attr.get(CStruct.I32, IbvDeviceAttr.MAX_FMR),
                attr.get(CStruct.I32, IbvDeviceAttr.MAX_MAP_PER_FMR));
    }

    static ExtendedDeviceAttributes extended(MemorySegment attr) {
        return new ExtendedDeviceAttributes(
                device(attr),
                attr.get(CStruct.U64, IbvDeviceAttrEx.ODP_CAPS + IbvOdpCaps.GENERAL_CAPS),
                attr.get(CStruct.U32, IbvDeviceAttrEx.ODP_CAPS + IbvOdpCaps.PER_TRANSPORT_CAPS_RC_ODP_CAPS),
                attr.get(CStruct.U32, IbvDeviceAttrEx.ODP_CAPS + IbvOdpCaps.PER_TRANSPORT_CAPS_UC_ODP_CAPS),
                attr.get(CStruct.U32, IbvDeviceAttrEx.ODP_CAPS + IbvOdpCaps.PER_TRANSPORT_CAPS_UD_ODP_CAPS),
                attr.get(CStruct.U32, IbvDeviceAttrEx.XRC_ODP_CAPS),
                attr.get(CStruct.U64, IbvDeviceAttrEx.COMPLETION_TIMESTAMP_MASK),
                attr.get(CStruct.U64, IbvDeviceAttrEx.HCA_CORE_CLOCK),
                attr.get(CStruct.U64, IbvDeviceAttrEx.DEVICE_CAP_FLAGS_EX),
                attr.get(CStruct.U32, IbvDeviceAttrEx.TSO_CAPS + IbvTsoCaps.MAX_TSO),
                attr.get(CStruct.U32, IbvDeviceAttrEx.TSO_CAPS + IbvTsoCaps.SUPPORTED_QPTS),
                attr.get(CStruct.U32, IbvDeviceAttrEx.RSS_CAPS + IbvRssCaps.SUPPORTED_QPTS),
                attr.get(CStruct.U32, IbvDeviceAttrEx.RSS_CAPS + IbvRssCaps.MAX_RWQ_INDIRECTION_TABLES),
                attr.get(CStruct.U32, IbvDeviceAttrEx.RSS_CAPS + IbvRssCaps.MAX_RWQ_INDIRECTION_TABLE_SIZE),
                attr.get(CStruct.U64, IbvDeviceAttrEx.RSS_CAPS + IbvRssCaps.RX_HASH_FIELDS_MASK),
                Byte.toUnsignedInt(attr.get(CStruct.U8, IbvDeviceAttrEx.RSS_CAPS + IbvRssCaps.RX_HASH_FUNCTION)),
                attr.get(CStruct.U32, IbvDeviceAttrEx.MAX_WQ_TYPE_RQ),
                attr.get(CStruct.U32, IbvDeviceAttrEx.PACKET_PACING_CAPS + IbvPacketPacingCaps.QP_RATE_LIMIT_MIN),
                attr.get(CStruct.U32, IbvDeviceAttrEx.PACKET_PACING_CAPS + IbvPacketPacingCaps.QP_RATE_LIMIT_MAX),
                attr.get(CStruct.U32, IbvDeviceAttrEx.PACKET_PACING_CAPS + IbvPacketPacingCaps.SUPPORTED_QPTS),
                attr.get(CStruct.U32, IbvDeviceAttrEx.RAW_PACKET_CAPS),
                attr.get(CStruct.U32, IbvDeviceAttrEx.TM_CAPS + IbvTmCaps.MAX_RNDV_HDR_SIZE),
                attr.get(CStruct.U32, IbvDeviceAttrEx.TM_CAPS + IbvTmCaps.MAX_NUM_TAGS),
                attr.get(CStruct.U32, IbvDeviceAttrEx.TM_CAPS + IbvTmCaps.FLAGS),
                attr.get(CStruct.U32, IbvDeviceAttrEx.TM_CAPS + IbvTmCaps.MAX_OPS),
                attr.get(CStruct.U32, IbvDeviceAttrEx.TM_CAPS + IbvTmCaps.MAX_SGE),
                Short.toUnsignedInt(
                        attr.get(CStruct.U16, IbvDeviceAttrEx.CQ_MOD_CAPS + IbvCqModerationCaps.MAX_CQ_COUNT)),
                Short.toUnsignedInt(
                        attr.get(CStruct.U16, IbvDeviceAttrEx.CQ_MOD_CAPS + IbvCqModerationCaps.MAX_CQ_PERIOD)),
                attr.get(CStruct.U64, IbvDeviceAttrEx.MAX_DM_SIZE),
                Short.toUnsignedInt(
                        attr.get(CStruct.U16, IbvDeviceAttrEx.PCI_ATOMIC_CAPS + IbvPciAtomicCaps.FETCH_ADD)),
                Short.toUnsignedInt(attr.get(CStruct.U16, IbvDeviceAttrEx.PCI_ATOMIC_CAPS + IbvPciAtomicCaps.SWAP)),
                Short.toUnsignedInt(
                        attr.get(CStruct.U16, IbvDeviceAttrEx.PCI_ATOMIC_CAPS + IbvPciAtomicCaps.COMPARE_SWAP)),
                attr.get(CStruct.U32, IbvDeviceAttrEx.PHYS_PORT_CNT_EX));
    }

    static PortAttributes port(MemorySegment attr) {
        int extendedSpeed = attr.get(CStruct.U32, IbvPortAttr.ACTIVE_SPEED_EX);
        return new PortAttributes(
                PortState.of(attr.get(CStruct.ENUM, IbvPortAttr.STATE)),
                Mtu.of(attr.get(CStruct.ENUM, IbvPortAttr.MAX_MTU)),
                Mtu.of(attr.get(CStruct.ENUM, IbvPortAttr.ACTIVE_MTU)),
                attr.get(CStruct.I32, IbvPortAttr.GID_TBL_LEN),
                attr.get(CStruct.U32, IbvPortAttr.PORT_CAP_FLAGS),
                Integer.toUnsignedLong(attr.get(CStruct.U32, IbvPortAttr.MAX_MSG_SZ)),
                attr.get(CStruct.U32, IbvPortAttr.BAD_PKEY_CNTR),
                attr.get(CStruct.U32, IbvPortAttr.QKEY_VIOL_CNTR),
                u16(attr, IbvPortAttr.PKEY_TBL_LEN),
                u16(attr, IbvPortAttr.LID),
                u16(attr, IbvPortAttr.SM_LID),
                u8(attr, IbvPortAttr.LMC),
                u8(attr, IbvPortAttr.MAX_VL_NUM),
                u8(attr, IbvPortAttr.SM_SL),
                u8(attr, IbvPortAttr.SUBNET_TIMEOUT),
                u8(attr, IbvPortAttr.INIT_TYPE_REPLY),
                u8(attr, IbvPortAttr.ACTIVE_WIDTH),
                extendedSpeed == 0 ? u8(attr, IbvPortAttr.ACTIVE_SPEED) : extendedSpeed,
                u8(attr, IbvPortAttr.PHYS_STATE),
                LinkLayer.of(u8(attr, IbvPortAttr.LINK_LAYER)),
                u8(attr, IbvPortAttr.FLAGS),
                u16(attr, IbvPortAttr.PORT_CAP_FLAGS2));
    }

    static GidEntry gid(MemorySegment entry) {
        return new GidEntry(
                Context.readGid(entry, IbvGidEntry.GID),
                entry.get(CStruct.U32, IbvGidEntry.GID_INDEX),
                entry.get(CStruct.U32, IbvGidEntry.PORT_NUM),
                GidType.of(entry.get(CStruct.U32, IbvGidEntry.GID_TYPE)),
                entry.get(CStruct.U32, IbvGidEntry.NDEV_IFINDEX));
    }

    private static int u8(MemorySegment attr, long offset) {
        return Byte.toUnsignedInt(attr.get(CStruct.U8, offset));
    }

    private static int u16(MemorySegment attr, long offset) {
        return Short.toUnsignedInt(attr.get(CStruct.U16, offset));
    }
}
