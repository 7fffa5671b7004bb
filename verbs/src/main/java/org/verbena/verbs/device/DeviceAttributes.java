package org.verbena.verbs.device;

import java.util.EnumSet;
import java.util.Set;

/**
 * The attributes of a device. Limits are upper bounds; how much is available depends on what is in use.
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

    /** Makes the set immutable. */
    public DeviceAttributes {
        capabilities = Set.copyOf(capabilities);
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
