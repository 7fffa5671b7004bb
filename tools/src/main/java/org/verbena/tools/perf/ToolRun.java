package org.verbena.tools.perf;

/**
 * The measurement that a C program is to repeat after {@code perf}.
 *
 * @param test which
 * @param isLatency latency or bandwidth
 * @param bytes of one operation
 * @param connections over how many at once
 * @param window operations under way on each
 * @param isBidirectional whether both ends send at once
 * @param seconds how long, for programs that take a time
 * @param count how many operations in all, for programs that take a number
 */
record ToolRun(
        PerfTest test,
        boolean isLatency,
        int bytes,
        int connections,
        int window,
        boolean isBidirectional,
        int seconds,
        int count) {
    private static final int WORDS = 8;
    private static final int MAX_CONNECTIONS = 4096;
    private static final int MAX_WINDOW = 1 << 16;
    private static final int MAX_SECONDS = 3600;
    /** Fewer operations are not significant. */
    static final int MIN_COUNT = 100;

    private static final int MAX_COUNT = 100_000_000;

    /** Checks it, as it may have come from a peer and becomes part of a command line. */
    ToolRun {
        check("bytes", bytes, 1, PerfProtocol.MAX_MEMORY_BYTES);
        check("connections", connections, 1, MAX_CONNECTIONS);
        check("window", window, 1, MAX_WINDOW);
        check("seconds", seconds, 1, MAX_SECONDS);
        check("count", count, MIN_COUNT, MAX_COUNT);
    }

    private static void check(String what, int value, int min, int max) {
        if (value < min || value > max) {
            throw new IllegalArgumentException(what + " must be " + min + " to " + max + ", not " + value);
        }
    }

    /** The same measurement, for about the same time. */
    static ToolRun of(PerfTest test, PerfFigures measured, double seconds) {
        return new ToolRun(
                test,
                measured.mode().equals("lat"),
                measured.bytes(),
                measured.connections(),
                Math.max(1, measured.window()),
                measured.bidirectional(),
                Math.clamp(Math.round(seconds), 1, MAX_SECONDS),
                Math.clamp(measured.count(), MIN_COUNT, MAX_COUNT));
    }

    int countOfEachConnection() {
        return Math.max(MIN_COUNT, count / connections);
    }

    /** As words, for a peer. */
    String encode() {
        return String.join(
                " ",
                test.name(),
                "" + isLatency,
                "" + bytes,
                "" + connections,
                "" + window,
                "" + isBidirectional,
                "" + seconds,
                "" + count);
    }

    /**
     * Parses a peer's words.
     *
     * @throws IllegalArgumentException they are not a run
     */
    static ToolRun decode(String text) {
        String[] words = text.split(" ", -1);
        if (words.length != WORDS) {
            throw new IllegalArgumentException(words.length + " words instead of " + WORDS);
        }
        return new ToolRun(
                PerfTest.valueOf(words[0]),
                Boolean.parseBoolean(words[1]),
                Integer.parseInt(words[2]),
                Integer.parseInt(words[3]),
                Integer.parseInt(words[4]),
                Boolean.parseBoolean(words[5]),
                Integer.parseInt(words[6]),
                Integer.parseInt(words[7]));
    }
}
