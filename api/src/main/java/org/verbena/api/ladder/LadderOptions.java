package org.verbena.api.ladder;

import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.verbena.api.Exchange;
import org.verbena.api.RdmaClient;
import org.verbena.api.RdmaLadder;

/**
 * How a client connects by a ladder ({@link RdmaLadder}): what it tries, when, and what it needs. Immutable; start from
 * {@link #DEFAULTS}.
 *
 * <p>A rung is tried when the one before it has failed, or has not connected within the hedge delay. The first rung
 * that connects is used; if several are connected by then, the best of them. Rungs that were passed over are remembered
 * for their address: while they are, they are tried last, not first.
 *
 * @param rungs names of providers, the best first, and {@code tcp} for plain TCP, which is only for streams:
 *     connections of messages ignore it. No name twice
 * @param hedgeDelay how long a rung may take before the next one is tried as well, 1 ms or more; counted in
 *     milliseconds. 250 ms as RFC 8305 recommends
 * @param forgetAfter how long a rung that was passed over is tried last for that address; zero to remember nothing. A
 *     longer time saves attempts; a shorter one moves a client up sooner
 * @param minimumRung the lowest rung that may be used, one of {@code rungs}; null for the last
 * @param needs rungs without one of these are not used
 * @param moveUp how often an {@link RdmaClient} below the best rung tries the better ones, 1 ms or more; null for
 *     never: see {@link #withMoveUp}
 */
public record LadderOptions(
        List<String> rungs,
        Duration hedgeDelay,
        Duration forgetAfter,
        @Nullable String minimumRung,
        Set<LadderCapability> needs,
        @Nullable Duration moveUp) {

    /**
     * {@code verbs}, {@code soft}, plain TCP for streams; 250 ms; remembered for 10 minutes; no minimum, no needs; a
     * connection stays on its rung.
     */
    public static final LadderOptions DEFAULTS = new LadderOptions(
            List.of("verbs", "soft", "tcp"), Duration.ofMillis(250), Duration.ofMinutes(10), null, Set.of(), null);

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
        if (Objects.requireNonNull(forgetAfter, "forgetAfter is null").isNegative()) {
            throw new IllegalArgumentException("forgetAfter " + forgetAfter + " is below zero");
        }
        if (minimumRung != null && !rungs.contains(minimumRung)) {
            throw new IllegalArgumentException("the minimum rung " + minimumRung + " is not among the rungs " + rungs);
        }
        if (moveUp != null && moveUp.toMillis() < 1) {
            throw new IllegalArgumentException("moveUp " + moveUp + " is below 1 ms");
        }
    }

    /**
     * The same with other rungs, the best first. The minimum rung must be among them.
     *
     * @param names of providers, and {@code tcp}
     * @return changed options
     */
    public LadderOptions withRungs(String... names) {
        return new LadderOptions(List.of(names), hedgeDelay, forgetAfter, minimumRung, needs, moveUp);
    }

    /**
     * The same with another delay.
     *
     * @param delay 1 ms or more
     * @return changed options
     */
    public LadderOptions withHedgeDelay(Duration delay) {
        return new LadderOptions(rungs, delay, forgetAfter, minimumRung, needs, moveUp);
    }

    /**
     * The same with another time to remember.
     *
     * @param time zero or more
     * @return changed options
     */
    public LadderOptions withForgetAfter(Duration time) {
        return new LadderOptions(rungs, hedgeDelay, time, minimumRung, needs, moveUp);
    }

    /**
     * The same, never below a rung: if no rung down to it connects, connecting fails with the reason of each.
     *
     * @param name one of the rungs
     * @return changed options
     */
    public LadderOptions withMinimumRung(String name) {
        return new LadderOptions(
                rungs, hedgeDelay, forgetAfter, Objects.requireNonNull(name, "the rung is null"), needs, moveUp);
    }

    /**
     * The same, using only rungs with these capabilities. The capabilities of a connection are known when it is
     * established; one that lacks any of them is closed, and the next rung is tried.
     *
     * @param capabilities what is needed
     * @return changed options
     */
    public LadderOptions withNeeds(LadderCapability... capabilities) {
        return new LadderOptions(rungs, hedgeDelay, forgetAfter, minimumRung, Set.of(capabilities), moveUp);
    }

    /**
     * The same, and an {@link RdmaClient} whose connection is below the best rung tries the better ones from time to
     * time, in the background, and moves to one that connects. Off by default: a connection then stays on its rung
     * until it ends. Channels that {@link RdmaLadder} connects always stay.
     *
     * <p>When a better connection is established, the client sends everything on it from then on. The old one stays
     * open for a probation of {@code every}, but 100 ms at least and 3 s at most, and longer while no request on the
     * better one has an answer: if that one is lost by then, or does not answer, the client returns to the old one,
     * and tries again later. Otherwise the old one ends when its last request has a reply or has failed. Messages
     * and requests on two connections are not ordered, so what was sent on the old one may be handled after what was
     * sent on the new one.
     *
     * <p>Everything that belongs to the old connection ends with it, so <b>leave this off</b> in clients that
     *
     * <ul>
     *   <li>use one-sided operations, registered memory or remote keys: all of these belong to one connection; <li>keep
     *   {@link RdmaClient#channel()}, or send on it; <li>get messages from a server that keeps an {@link Exchange} for
     *   them: once the client has moved, these fail at the server. While a client moves, its {@link
     *   RdmaClient.Builder#onMessage} may run for both connections at once, on two threads, and messages of the two
     *   connections are not ordered.
     * </ul>
     *
     * <p>Each move is logged at INFO, counted ({@link LadderStatistics#movedUp}), and an event of the Flight Recorder,
     * {@code org.verbena.LadderMove}, which lasts as long as the probation.
     *
     * @param every the time between two attempts, and up to a quarter more at random; 1 ms or more. A cheap check comes
     *     first: an attempt is made only if a device serves the address
     * @return changed options
     */
    public LadderOptions withMoveUp(Duration every) {
        return new LadderOptions(
                rungs, hedgeDelay, forgetAfter, minimumRung, needs, Objects.requireNonNull(every, "the time is null"));
    }
}
