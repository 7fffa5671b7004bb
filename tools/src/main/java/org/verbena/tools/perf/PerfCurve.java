package org.verbena.tools.perf;

import java.util.NavigableMap;

/**
 * The curve of one test with one size in a picture.
 *
 * @param run prefix of the names of its lines
 * @param test its name
 * @param isLatency whether latency was measured
 * @param bytes of an operation
 * @param count operations
 * @param megabytesPerSecond in 10^6 bytes
 * @param percentiles percentile, 0 to 100, to microseconds
 */
record PerfCurve(
        String run,
        String test,
        boolean isLatency,
        int bytes,
        long count,
        double megabytesPerSecond,
        NavigableMap<Double, Double> percentiles) {}
