package org.verbena.api.metrics;

import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.util.List;
import java.util.function.ToDoubleFunction;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.api.ladder.LadderStatistics;

/**
 * The statistics of the rungs of ladders ({@link org.verbena.api.RdmaLadder}) as Micrometer's meters, tagged {@code
 * rung}.
 *
 * <pre>{@code
 * new LadderMetrics(LadderOptions.DEFAULTS).bindTo(registry);
 * }</pre>
 */
public final class LadderMetrics implements MeterBinder {
    private final List<String> rungs;

    /**
     * Creates meters for the rungs of a ladder; its other options do not matter.
     *
     * @param ladder names the rungs
     */
    public LadderMetrics(LadderOptions ladder) {
        rungs = ladder.rungs();
    }

    @Override
    public void bindTo(MeterRegistry registry) {
        for (String rung : rungs) {
            counter(
                    registry,
                    rung,
                    "verbena.ladder.used",
                    "connections that a ladder gave this rung",
                    name -> LadderStatistics.of(name).used());
            counter(
                    registry,
                    rung,
                    "verbena.ladder.passed",
                    "times that a ladder passed this rung over",
                    name -> LadderStatistics.of(name).passed());
            counter(
                    registry,
                    rung,
                    "verbena.ladder.moved",
                    "times that a client moved up to this rung",
                    name -> LadderStatistics.of(name).movedUp());
        }
    }

    private static void counter(
            MeterRegistry registry, String rung, String name, String description, ToDoubleFunction<String> figure) {
        FunctionCounter.builder(name, rung, figure)
                .description(description)
                .tag("rung", rung)
                .register(registry);
    }
}
