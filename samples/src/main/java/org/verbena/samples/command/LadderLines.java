package org.verbena.samples.command;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.stream.Collectors;
import org.verbena.api.ladder.LadderResult;

/** How a client connected by a ladder, for people. */
public final class LadderLines {
    private static final double NANOS_PER_MILLI = 1e6;

    private LadderLines() {}

    /** A line for each rung: why it was not tried, or when it was, how long that took, and the outcome. */
    public static List<String> of(LadderResult ladder) {
        List<String> lines = new ArrayList<>();
        lines.add("ladder to " + ladder.address() + ":");
        Set<String> tried =
                ladder.attempts().stream().map(LadderResult.Attempt::rung).collect(Collectors.toSet());
        for (LadderResult.Passed passed : ladder.passed()) {
            if (!tried.contains(passed.rung())) {
                lines.add(line(passed.rung(), "not tried: " + passed.reason()));
            }
        }
        for (LadderResult.Attempt attempt : ladder.attempts()) {
            String outcome = !attempt.failure().isEmpty()
                    ? attempt.failure()
                    : attempt.rung().equals(ladder.rung()) ? "up, and used" : "up, and not needed";
            lines.add(line(
                    attempt.rung(),
                    String.format(
                            Locale.ROOT,
                            "began after %.1f ms, took %.1f ms: %s",
                            millis(attempt.began()),
                            millis(attempt.took()),
                            outcome)));
        }
        return lines;
    }

    private static String line(String rung, String text) {
        return String.format(Locale.ROOT, "  %-6s %s", rung, text);
    }

    private static double millis(Duration time) {
        return time.toNanos() / NANOS_PER_MILLI;
    }
}
