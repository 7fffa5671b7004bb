package org.verbena.api.internal.stat;

import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.LongAdder;

/** How often a rung of ladders was used or not, in the whole process. Any thread. */
public final class RungCounters {
    private static final ConcurrentMap<String, RungCounters> BY_RUNG = new ConcurrentHashMap<>();
    private static final RungCounters NONE = new RungCounters();

    private final LongAdder used = new LongAdder();
    private final LongAdder passed = new LongAdder();
    private final LongAdder movedUp = new LongAdder();

    private RungCounters() {}

    /** The counters of a rung, for reading: all 0 if nothing was counted yet. */
    public static RungCounters of(String rung) {
        return BY_RUNG.getOrDefault(rung, NONE);
    }

    public static void countUsed(String rung) {
        counting(rung).used.increment();
    }

    public static void countPassed(String rung) {
        counting(rung).passed.increment();
    }

    public static void countMovedUp(String rung) {
        counting(rung).movedUp.increment();
    }

    private static RungCounters counting(String rung) {
        return BY_RUNG.computeIfAbsent(rung, name -> new RungCounters());
    }

    public long used() {
        return used.sum();
    }

    public long passed() {
        return passed.sum();
    }

    public long movedUp() {
        return movedUp.sum();
    }
}
