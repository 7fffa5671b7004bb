package org.verbena.tools.interop.pingpong;

import java.io.PrintWriter;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/** Counts the cycles of a device's clock between completions of receives. */
final class ReceiveClock {
    /** The bits of a timestamp that count; the clock wraps behind them. */
    private final long mask;

    private boolean started;
    private long previous;
    private long intervals;
    private long min = -1; // the highest value, since these are unsigned
    private long max;
    private double total;

    ReceiveClock(long mask) {
        this.mask = mask;
    }

    /** Takes the timestamp of the next receive. */
    void received(long timestamp) {
        if (started) {
            long cycles = timestamp - previous & mask;
            min = Long.compareUnsigned(cycles, min) < 0 ? cycles : min;
            max = Long.compareUnsigned(cycles, max) > 0 ? cycles : max;
            // The sum of 64-bit cycles may need more than 64 bits; the average is a fraction anyway.
            total += cycles >= 0 ? cycles : cycles + 0x1p64;
            intervals++;
        }
        started = true;
        previous = timestamp;
    }

    /** The figures, or null if there were not two receives. */
    PingPongFigures.@Nullable Cycles cycles() {
        return intervals == 0
                ? null
                : new PingPongFigures.Cycles(Long.toUnsignedString(max), Long.toUnsignedString(min), total / intervals);
    }

    /** Prints C's three lines, if there were at least two receives. */
    void report(PrintWriter out) {
        if (intervals > 0) {
            out.println("Max receive completion clock cycles = " + Long.toUnsignedString(max));
            out.println("Min receive completion clock cycles = " + Long.toUnsignedString(min));
            out.printf(Locale.ROOT, "Average receive completion clock cycles = %f%n", total / intervals);
        }
    }
}
