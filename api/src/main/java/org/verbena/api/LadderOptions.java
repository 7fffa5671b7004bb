package org.verbena.api;

import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * How a client climbs down a ladder ({@link RdmaLadder}): what it tries, when, and what it must not do without. Immutable;
 * start from {@link #DEFAULTS}.
 *
 * <p>A rung is tried when the one before it has failed, or has not come up within the hedge delay. Whichever comes up
 * first is used, and the best of those that are up by then. Rungs that were passed over are remembered for their address:
 * for that time they are tried last, not first.
 *
 * @param rungs names of providers, the best first, and {@link ConnectionProvider#TCP} for plain TCP, which is for streams
 *     alone: connections of messages ignore it. No name twice
 * @param hedgeDelay how long a rung may take before the next one is tried as well, 1 ms or more; counted in milliseconds.
 *     250 ms as RFC 8305 recommends
 * @param memory how long a rung that was passed over is tried last for that address; zero to remember nothing. A longer
 *     time saves attempts; a shorter one moves a client up sooner
 * @param minimumRung the lowest rung that may be used, one of {@code rungs}; null for the last
 * @param needs rungs without one of these are not used
 */
public record LadderOptions(
        List<String> rungs,
        Duration hedgeDelay,
        Duration memory,
        @Nullable String minimumRung,
        Set<LadderCapability> needs) {

    /** {@code verbs}, {@code soft}, plain TCP for streams; 250 ms; remembered for 10 minutes; no minimum, no needs. */
    public static final LadderOptions DEFAULTS = new LadderOptions(
            List.of("verbs", "soft", ConnectionProvider.TCP),
            Duration.ofMillis(250),
            Duration.ofMinutes(10),
            null,
            Set.of());

    /** Checks and copies. */
    public LadderOptions {
        rungs = List.copyOf(rungs);
        needs = Set.copyOf(needs);
        if (rungs.isEmpty() || rungs.stream().distinct().count() < rungs.size()) {
            throw new IllegalArgumentException("a ladder needs one rung or more, each another one: " + rungs);
        }
        if (Objects.requireNonNull(hedgeDelay, "hedgeDelay is null").toMillis() < 1) {
            throw new IllegalArgumentException("hedgeDelay " + hedgeDelay + " is below 1 ms");
        }
        if (Objects.requireNonNull(memory, "memory is null").isNegative()) {
            throw new IllegalArgumentException("memory " + memory + " is below zero");
        }
        if (minimumRung != null && !rungs.contains(minimumRung)) {
            throw new IllegalArgumentException("the minimum rung " + minimumRung + " is not among the rungs " + rungs);
        }
    }

    /**
     * The same with other rungs, the best first. The minimum rung must be among them.
     *
     * @param names of providers, and {@link ConnectionProvider#TCP}
     * @return changed options
     */
    public LadderOptions withRungs(String... names) {
        return new LadderOptions(List.of(names), hedgeDelay, memory, minimumRung, needs);
    }

    /**
     * The same with another delay.
     *
     * @param delay 1 ms or more
     * @return changed options
     */
    public LadderOptions withHedgeDelay(Duration delay) {
        return new LadderOptions(rungs, delay, memory, minimumRung, needs);
    }

    /**
     * The same with another time to remember.
     *
     * @param time zero or more
     * @return changed options
     */
    public LadderOptions withMemory(Duration time) {
        return new LadderOptions(rungs, hedgeDelay, time, minimumRung, needs);
    }

    /**
     * The same, never below a rung: if no rung down to it comes up, connecting fails and says why each did not.
     *
     * @param name one of the rungs
     * @return changed options
     */
    public LadderOptions withMinimumRung(String name) {
        return new LadderOptions(rungs, hedgeDelay, memory, Objects.requireNonNull(name, "the rung is null"), needs);
    }

    /**
     * The same, with rungs that can do these things alone. What a connection can do is known when it is up; one that lacks
     * something is closed and the next rung is tried.
     *
     * @param capabilities what is needed
     * @return changed options
     */
    public LadderOptions withNeeds(LadderCapability... capabilities) {
        return new LadderOptions(rungs, hedgeDelay, memory, minimumRung, Set.of(capabilities));
    }
}
