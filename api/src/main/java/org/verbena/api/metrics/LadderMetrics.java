package org.verbena.api.metrics;

import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.util.List;
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
    private static final List<Figure<LadderStatistics>> ROWS = Figure.table(LadderStatistics.class, """
            verbena.ladder.used | SO_FAR | used | connections that a ladder gave this rung
            verbena.ladder.passed | SO_FAR | passed | times that a ladder passed this rung over
            verbena.ladder.moved | SO_FAR | movedUp | times that a client moved up to this rung
            """);

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
            for (Figure<LadderStatistics> row : ROWS) {
                row.bind(registry, "rung", rung, rung, LadderStatistics::of);
            }
        }
    }
}
