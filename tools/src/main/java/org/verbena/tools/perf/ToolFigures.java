package org.verbena.tools.perf;

/**
 * The result of a C program.
 *
 * @param typicalMicros the median latency; NaN if it has none
 * @param averageMicros the mean latency; NaN if it has none
 * @param megabytesPerSecond bandwidth, in 10^6 bytes; NaN if it has none
 * @param perSecond operations in a second; NaN if it has none
 */
record ToolFigures(double typicalMicros, double averageMicros, double megabytesPerSecond, double perSecond) {
    static ToolFigures latency(double typicalMicros, double averageMicros) {
        return new ToolFigures(typicalMicros, averageMicros, Double.NaN, Double.NaN);
    }

    static ToolFigures bandwidth(double megabytesPerSecond, double perSecond) {
        return new ToolFigures(Double.NaN, Double.NaN, megabytesPerSecond, perSecond);
    }

    /**
     * Whether each value is a number: perftest divides by the rate of the processor's clock, and by 0 if it could not
     * tell that in a machine with an unsteady clock.
     */
    boolean areFinite() {
        return !Double.isInfinite(typicalMicros)
                && !Double.isInfinite(averageMicros)
                && !Double.isInfinite(megabytesPerSecond)
                && !Double.isInfinite(perSecond);
    }
}
