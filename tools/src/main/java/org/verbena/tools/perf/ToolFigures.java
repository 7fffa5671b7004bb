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
}
