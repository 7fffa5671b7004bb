package org.verbena.verbs.packet;

import java.util.Set;
import org.verbena.verbs.ffm.Ranges;

/**
 * A security association of IPsec. Devices read the other values than the flags only with FULL_OFFLOAD.
 *
 * <p>Source: ibv_flow_action_esp(3)
 *
 * @param securityParametersIndex what packets carry to name it, 32 bits
 * @param sequenceNumber the lower 32 bits of the first sequence number
 * @param paddingBytes how much padding hides the length of traffic, 0 for none
 * @param flags how the device treats packets
 * @param hardLimitPackets after how many packets the rest is dropped, 0 for no limit
 */
public record EspAssociation(
        int securityParametersIndex, int sequenceNumber, int paddingBytes, Set<EspFlag> flags, long hardLimitPackets) {

    /** Copies the flags and checks ranges. */
    public EspAssociation {
        Ranges.check("paddingBytes", paddingBytes, 0, Integer.MAX_VALUE);
        flags = Set.copyOf(flags);
    }

    /**
     * For packets whose ESP headers the program writes and reads.
     *
     * @param flags how the device treats packets
     * @return the association
     */
    public static EspAssociation inlineCrypto(Set<EspFlag> flags) {
        return new EspAssociation(0, 0, 0, flags, 0);
    }
}
