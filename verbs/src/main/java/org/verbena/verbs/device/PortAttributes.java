package org.verbena.verbs.device;

/**
 * The state of a port.
 *
 * <p>Source: ibv_query_port(3)
 *
 * @param state its logical state
 * @param maxMtu the largest MTU it can
 * @param activeMtu the MTU in force
 * @param gidTableEntries entries of its GID table, empty ones included
 * @param capabilityFlags C's port_cap_flags
 * @param maxMessageBytes the longest message
 * @param badPkeyCount packets with a wrong P_Key seen
 * @param qkeyViolationCount packets with a wrong Q_Key seen
 * @param pkeyTableEntries entries of its P_Key table
 * @param lid local identifier; 0 on Ethernet
 * @param subnetManagerLid where the subnet manager is
 * @param lidMaskBits low bits of the LID that select a path
 * @param maxVirtualLanes C's encoding of the virtual lanes
 * @param subnetManagerServiceLevel service level to reach the subnet manager
 * @param subnetTimeout as an exponent: 4.096 us * 2^n
 * @param initTypeReply what the subnet manager did on initialisation
 * @param activeWidth C's encoding; {@link #lanes()} reads it
 * @param activeSpeed C's encoding, of active_speed_ex where library, kernel and device tell that;
 *     {@link #gigabitsPerSecond()} reads it
 * @param physicalState C's encoding: 3 is disabled, 5 link up
 * @param linkLayer InfiniBand or Ethernet
 * @param flags C's flags
 * @param capabilityFlags2 C's port_cap_flags2
 */
public record PortAttributes(
        PortState state,
        Mtu maxMtu,
        Mtu activeMtu,
        int gidTableEntries,
        int capabilityFlags,
        long maxMessageBytes,
        int badPkeyCount,
        int qkeyViolationCount,
        int pkeyTableEntries,
        int lid,
        int subnetManagerLid,
        int lidMaskBits,
        int maxVirtualLanes,
        int subnetManagerServiceLevel,
        int subnetTimeout,
        int initTypeReply,
        int activeWidth,
        int activeSpeed,
        int physicalState,
        LinkLayer linkLayer,
        int flags,
        int capabilityFlags2) {

    /**
     * The number of lanes of the link.
     *
     * @return 1, 2, 4, 8 or 12; 0 if the encoding is not known
     */
    public int lanes() {
        return switch (activeWidth) {
            case 1 -> 1;
            case 2 -> 4;
            case 4 -> 8;
            case 8 -> 12;
            case 16 -> 2;
            default -> 0;
        };
    }

    /**
     * The speed of one lane in Gbit/s.
     *
     * @return 2.5 to 200; 0 if the encoding is not known
     */
    public double gigabitsPerSecondPerLane() {
        return switch (activeSpeed) {
            case 1 -> 2.5;
            case 2 -> 5.0;
            case 4, 8 -> 10.0;
            case 16 -> 14.0;
            case 32 -> 25.0;
            case 64 -> 50.0;
            case 128 -> 100.0;
            case 256 -> 200.0;
            default -> 0;
        };
    }

    /**
     * The speed of the link in Gbit/s.
     *
     * @return all lanes together; 0 if the encoding is not known
     */
    public double gigabitsPerSecond() {
        return lanes() * gigabitsPerSecondPerLane();
    }
}
