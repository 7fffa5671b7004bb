package org.verbena.verbs.queue;

import org.verbena.verbs.ffm.Ranges;

/**
 * A limit of the send rate of a raw packet queue pair.
 *
 * <p>Source: ibv_modify_qp_rate_limit(3)
 *
 * @param kilobitsPerSecond 0 for no limit
 * @param maxBurstBytes how much may go at once; 0 for the device's choice
 * @param typicalPacketBytes 0 for the device's choice, up to 65535
 */
public record RateLimit(int kilobitsPerSecond, int maxBurstBytes, int typicalPacketBytes) {
    /** Checks ranges. */
    public RateLimit {
        Ranges.check("kilobitsPerSecond", kilobitsPerSecond, 0, Integer.MAX_VALUE);
        Ranges.check("maxBurstBytes", maxBurstBytes, 0, Integer.MAX_VALUE);
        Ranges.check("typicalPacketBytes", typicalPacketBytes, 0, 0xffff);
    }
}
