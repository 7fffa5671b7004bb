package org.verbena.tools.perf;

import java.util.NavigableMap;
import java.util.TreeMap;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.HistogramIterationValue;
import org.verbena.samples.command.Measurement;

/**
 * The result of one test with one size. Times are in microseconds.
 *
 * @param test which
 * @param mode {@code lat} or {@code bw}
 * @param bytes of one operation
 * @param connections over how many at once
 * @param window operations under way on each; 0 if a rate was given
 * @param ratePerSecond the requested rate, of all connections together; 0 for none
 * @param bidirectional whether the server sent as well; count and bandwidth are then of both directions together
 * @param count operations measured
 * @param minMicros the quickest
 * @param p50Micros half took no longer
 * @param p90Micros nine in ten took no longer
 * @param p99Micros 99 in a hundred took no longer
 * @param p999Micros 999 in a thousand took no longer
 * @param maxMicros the slowest
 * @param averageMicros the mean
 * @param deviationMicros the standard deviation
 * @param perSecond operations in a second
 * @param megabytesPerSecond their bytes, in 10^6
 * @param cpuSecondsPerMillion processor time of this process for a million of them
 * @param allocatedBytesEach heap that this process allocated for each
 */
record PerfFigures(
        String test,
        String mode,
        int bytes,
        int connections,
        int window,
        double ratePerSecond,
        boolean bidirectional,
        long count,
        double minMicros,
        double p50Micros,
        double p90Micros,
        double p99Micros,
        double p999Micros,
        double maxMicros,
        double averageMicros,
        double deviationMicros,
        double perSecond,
        double megabytesPerSecond,
        double cpuSecondsPerMillion,
        double allocatedBytesEach) {

    private static final double MILLION = 1e6;

    /** Points of a distribution between a percentile and the one halfway to 100. */
    private static final int TICKS_PER_HALF_DISTANCE = 2;

    /** Percentile, 0 to 100, to microseconds. */
    static NavigableMap<Double, Double> percentiles(Histogram times, double nanosPerMicro) {
        NavigableMap<Double, Double> percentiles = new TreeMap<>();
        for (HistogramIterationValue at : times.percentiles(TICKS_PER_HALF_DISTANCE)) {
            percentiles.put(at.getPercentileLevelIteratedTo(), at.getValueIteratedTo() / nanosPerMicro);
        }
        return percentiles;
    }

    /**
     * What was measured.
     *
     * @param all the client's operations
     * @param received messages of the server that arrived in the same time
     * @param used by the client's process
     */
    static PerfFigures of(
            PerfTest test,
            boolean isLatency,
            int bytes,
            PerfClient.Load load,
            Measurement all,
            long received,
            PerfUsage used) {
        Histogram times = all.histogram();
        double nanosPerMicro = test.nanosPerMicro(isLatency, load);
        long both = all.count() + received;
        double count = Math.max(1, both);
        double perSecond = all.perSecond() * both / Math.max(1, all.count());
        return new PerfFigures(
                test.toString(),
                isLatency ? "lat" : "bw",
                bytes,
                load.connections(),
                load.window(),
                load.ratePerSecond(),
                load.isBidirectional(),
                both,
                times.getMinValue() / nanosPerMicro,
                times.getValueAtPercentile(50) / nanosPerMicro,
                times.getValueAtPercentile(90) / nanosPerMicro,
                times.getValueAtPercentile(99) / nanosPerMicro,
                times.getValueAtPercentile(99.9) / nanosPerMicro,
                times.getMaxValue() / nanosPerMicro,
                times.getMean() / nanosPerMicro,
                times.getStdDeviation() / nanosPerMicro,
                perSecond,
                perSecond * bytes / MILLION,
                used.cpuNanos() / 1e9 / count * MILLION,
                used.allocatedBytes() / count);
    }
}
