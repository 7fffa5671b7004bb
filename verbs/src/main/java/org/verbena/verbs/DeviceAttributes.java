package org.verbena.verbs;

import java.lang.foreign.MemorySegment;
import java.util.EnumSet;
import java.util.Set;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.IbvDeviceAttr;
import org.verbena.verbs.ffm.Pointers;

/**
 * What a device is and how much it can do. Limits are upper bounds; what is free depends on what is in use.
 *
 * <p>Source: ibv_query_device(3)
 *
 * @param firmwareVersion as text
 * @param nodeGuid of the device, in host order
 * @param systemImageGuid of the card, in host order
 * @param maxRegionBytes the largest memory region
 * @param pageSizes the page sizes it knows, one bit each
 * @param vendorId IEEE OUI of the maker
 * @param vendorPartId the maker's part number
 * @param hardwareVersion the maker's version
 * @param maxQueuePairs queue pairs
 * @param maxWorkRequests work requests in one queue
 * @param capabilities optional features
 * @param maxSges scatter/gather elements in a work request, reads on some iWARP devices excepted
 * @param maxReadSges scatter/gather elements in a read
 * @param maxCompletionQueues completion queues
 * @param maxCompletionQueueEntries entries in one of them
 * @param maxRegions memory regions
 * @param maxProtectionDomains protection domains
 * @param maxReadsAsTarget reads and atomics outstanding that a queue pair can be the target of
 * @param maxReadsAsTargetTotal the same for the whole device
 * @param maxReadsAsInitiator reads and atomics outstanding that a queue pair can start
 * @param atomics how far atomics are atomic
 * @param maxWindows memory windows
 * @param maxRawEthernetQueuePairs raw packet queue pairs
 * @param maxMulticastGroups multicast groups
 * @param maxQueuePairsPerMulticastGroup queue pairs attached to one group
 * @param maxMulticastAttachments queue pairs attached to groups altogether
 * @param maxAddressHandles address handles
 * @param maxSharedReceiveQueues shared receive queues
 * @param maxSharedReceives receives in one of them
 * @param maxSharedReceiveSges scatter/gather elements in such a receive
 * @param maxPkeys P_Keys of a port
 * @param localAckDelay the device's own part of an acknowledgement's time, as an exponent: 4.096 us * 2^n
 * @param ports physical ports, numbered from 1
 * @param capabilityFlags C's device_cap_flags, with the bits that {@link DeviceCapability} does not know
 * @param maxEndToEndContexts contexts of reliable datagrams, which no device has any more, nor the three that follow
 * @param maxEndToEndReadsAsTarget reads outstanding that one of them can be the target of
 * @param maxEndToEndReadsAsInitiator reads outstanding that one of them can start
 * @param maxReliableDatagramDomains reliable datagram domains
 * @param maxRawIpv6QueuePairs raw IPv6 queue pairs
 * @param maxFastRegions fast memory regions, which Linux has given up
 * @param maxMapsPerFastRegion how often one of them could be mapped
 */
public record DeviceAttributes(
        String firmwareVersion,
        long nodeGuid,
        long systemImageGuid,
        long maxRegionBytes,
        long pageSizes,
        int vendorId,
        int vendorPartId,
        int hardwareVersion,
        int maxQueuePairs,
        int maxWorkRequests,
        Set<DeviceCapability> capabilities,
        int maxSges,
        int maxReadSges,
        int maxCompletionQueues,
        int maxCompletionQueueEntries,
        int maxRegions,
        int maxProtectionDomains,
        int maxReadsAsTarget,
        int maxReadsAsTargetTotal,
        int maxReadsAsInitiator,
        AtomicCapability atomics,
        int maxWindows,
        int maxRawEthernetQueuePairs,
        int maxMulticastGroups,
        int maxQueuePairsPerMulticastGroup,
        int maxMulticastAttachments,
        int maxAddressHandles,
        int maxSharedReceiveQueues,
        int maxSharedReceives,
        int maxSharedReceiveSges,
        int maxPkeys,
        int localAckDelay,
        int ports,
        int capabilityFlags,
        int maxEndToEndContexts,
        int maxEndToEndReadsAsTarget,
        int maxEndToEndReadsAsInitiator,
        int maxReliableDatagramDomains,
        int maxRawIpv6QueuePairs,
        int maxFastRegions,
        int maxMapsPerFastRegion) {

    private static final int FIRMWARE_BYTES = 64;

    /** Makes the set immutable. */
    public DeviceAttributes {
        capabilities = Set.copyOf(capabilities);
    }

    static DeviceAttributes read(MemorySegment attr) {
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
                DeviceCapability.set(attr.get(CStruct.U32, IbvDeviceAttr.DEVICE_CAP_FLAGS)),
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

    /**
     * Whether the device has all of some features.
     *
     * @param first a feature
     * @param others more
     * @return true if all are there
     */
    public boolean has(DeviceCapability first, DeviceCapability... others) {
        return capabilities.containsAll(EnumSet.of(first, others));
    }
}
