package org.verbena.verbs.device;

import java.util.Set;
import org.verbena.verbs.ffm.IbvOdpCaps;
import org.verbena.verbs.ffm.NativeConstant;
import org.verbena.verbs.memory.AccessFlag;
import org.verbena.verbs.queue.QueuePairType;

/**
 * The extended attributes of a device, beyond {@link DeviceAttributes}. Zero if the device does not report one.
 *
 * <p>Source: ibv_query_device_ex(3)
 *
 * @param basic the attributes from {@code Context.queryDevice}
 * @param generalOdp on-demand paging: bit 0 supported, bit 1 also for the whole address space
 * @param reliableOdp on-demand paging of RC, bits of ibv_odp_transport_cap_bits
 * @param unreliableOdp the same of UC
 * @param datagramOdp the same of UD
 * @param xrcOdp the same of XRC
 * @param completionTimestampMask which bits of completion timestamps count; 0 without timestamps
 * @param clockKilohertz the device's clock; 0 if unknown
 * @param capabilityFlags 64 bits of device_cap_flags
 * @param maxTsoBytes the longest segmented send, 0 without
 * @param tsoTypes queue pair types with segmentation, one bit each
 * @param rssTypes queue pair types with receive-side scaling, one bit each
 * @param maxIndirectionTables indirection tables
 * @param maxIndirectionTableEntries entries of one of them
 * @param hashFields what packets may be spread by
 * @param hashFunctions how they may be hashed
 * @param maxReceiveWorkQueues receive work queues
 * @param minRateKilobits the lowest rate limit, in kilobits a second
 * @param maxRateKilobits the highest rate limit, in kilobits a second; 0 without
 * @param rateLimitTypes queue pair types with rate limits, one bit each
 * @param rawPacketCapabilities bits of ibv_raw_packet_caps
 * @param maxRendezvousHeaderBytes tag matching: the longest rendezvous header
 * @param maxTags tag matching: tags in a list, 0 without
 * @param tagMatchingFlags tag matching: bits of ibv_tm_cap_flags
 * @param maxTagOperations tag matching: list operations outstanding
 * @param maxTagSges tag matching: scatter/gather elements of a tagged buffer
 * @param maxModerationCount moderation: completions to an event
 * @param maxModerationMicros moderation: microseconds to an event
 * @param maxDeviceMemoryBytes memory on the device, 0 without
 * @param pciFetchAdd fetch-and-add towards other PCI devices: bits of the sizes
 * @param pciSwap swap towards other PCI devices: bits of the sizes
 * @param pciCompareSwap compare-and-swap towards other PCI devices: bits of the sizes
 * @param physicalPorts physical ports, where there are more than 255
 */
public record ExtendedDeviceAttributes(
        DeviceAttributes basic,
        long generalOdp,
        int reliableOdp,
        int unreliableOdp,
        int datagramOdp,
        int xrcOdp,
        long completionTimestampMask,
        long clockKilohertz,
        long capabilityFlags,
        int maxTsoBytes,
        int tsoTypes,
        int rssTypes,
        int maxIndirectionTables,
        int maxIndirectionTableEntries,
        long hashFields,
        int hashFunctions,
        int maxReceiveWorkQueues,
        int minRateKilobits,
        int maxRateKilobits,
        int rateLimitTypes,
        int rawPacketCapabilities,
        int maxRendezvousHeaderBytes,
        int maxTags,
        int tagMatchingFlags,
        int maxTagOperations,
        int maxTagSges,
        int maxModerationCount,
        int maxModerationMicros,
        long maxDeviceMemoryBytes,
        int pciFetchAdd,
        int pciSwap,
        int pciCompareSwap,
        int physicalPorts) {
    /**
     * Whether memory can be registered {@link AccessFlag#ON_DEMAND}.
     *
     * @return false if all pages have to be pinned
     */
    public boolean hasOnDemandPaging() {
        return (generalOdp & IbvOdpCaps.SUPPORT) != 0;
    }

    /**
     * Whether {@code ProtectionDomain.registerAddressSpace} works.
     *
     * @return true if the whole address space can be registered
     */
    public boolean hasImplicitOnDemandPaging() {
        return hasOnDemandPaging() && (generalOdp & IbvOdpCaps.SUPPORT_IMPLICIT) != 0;
    }

    /**
     * What queue pairs of a type can do with memory that is registered {@link AccessFlag#ON_DEMAND}.
     *
     * @param type of the queue pairs
     * @return the operations; none without on-demand paging, and for types that devices do not report
     */
    public Set<OnDemandOperation> onDemandOperations(QueuePairType type) {
        if (!hasOnDemandPaging()) {
            return Set.of();
        }
        return NativeConstant.set(
                OnDemandOperation.class,
                switch (type) {
                    case RC -> reliableOdp;
                    case UC -> unreliableOdp;
                    case UD -> datagramOdp;
                    case XRC_SEND, XRC_RECV -> xrcOdp;
                    default -> 0;
                });
    }
}
