package org.verbena.api.ladder;

import org.verbena.api.RdmaLadder;
import org.verbena.api.internal.stat.RungCounters;

/**
 * How often the clients of this process that connect by a ladder ({@link RdmaLadder}) used a rung, and how often they
 * passed it over.
 *
 * @param rung {@code verbs}, {@code soft} ..., or {@code tcp}
 * @param used connections that it carries or carried
 * @param passed how often it did not connect, was not tried, or lacked a capability, whether or not a lower rung was
 *     used then
 * @param movedUp how often a client that had a lower rung moved to this one ({@link LadderOptions#withMoveUp}); these
 *     are among {@code used}
 */
public record LadderStatistics(String rung, long used, long passed, long movedUp) {

    /**
     * Takes a snapshot. Any thread.
     *
     * @param rung its name
     * @return the figures; 0 for one that no ladder has tried
     */
    public static LadderStatistics of(String rung) {
        RungCounters counters = RungCounters.of(rung);
        return new LadderStatistics(rung, counters.used(), counters.passed(), counters.movedUp());
    }
}
