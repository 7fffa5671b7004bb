package org.verbena.tools.interop.pingpong;

import org.jspecify.annotations.Nullable;

/**
 * The result of a ping-pong, as the C programs print it.
 *
 * @param bytes there and back
 * @param iterations exchanges
 * @param seconds how long they took
 * @param megabitsPerSecond 10^6 bits
 * @param microsPerIteration how long one took
 * @param receiveCycles of the device's clock between receives; null unless completions have timestamps
 */
record PingPongFigures(
        long bytes,
        int iterations,
        double seconds,
        double megabitsPerSecond,
        double microsPerIteration,
        @Nullable Cycles receiveCycles) {

    /** Cycles between two receives; the first two as text, since they are unsigned 64-bit numbers. */
    record Cycles(String max, String min, double average) {}
}
