package org.verbena.tools.stat;

import java.time.Instant;
import java.time.LocalDateTime;
import java.time.ZoneId;
import java.time.format.DateTimeFormatter;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.verbena.transport.stat.EndedReading;
import org.verbena.transport.stat.ProcessReading;
import org.verbena.transport.stat.ProviderReading;

/** The text that {@code stat} prints for people. */
final class Page {
    private static final DateTimeFormatter TIME = DateTimeFormatter.ofPattern("MM-dd HH:mm:ss", Locale.ROOT);
    private static final double MEBIBYTE = 1 << 20;
    private static final double MEGABYTE = 1e6;
    private static final long MILLIS_PER_SECOND = 1000;

    private Page() {}

    /** All processes, a line each. */
    static String list(List<ProcessReading> processes, long nowMillis) {
        StringBuilder page = new StringBuilder(String.format(
                Locale.ROOT, "%8s %-10s %11s %8s  %s%n", "PID", "up", "connections", "provider", "command"));
        for (ProcessReading process : processes) {
            Set<String> providers = new TreeSet<>();
            process.providers().forEach(provider -> providers.add(provider.name()));
            page.append(String.format(
                    Locale.ROOT,
                    "%8d %-10s %11d %8s  %s%s%n",
                    process.pid(),
                    up(process.startedMillis(), nowMillis),
                    process.openConnections(),
                    providers.isEmpty() ? "-" : String.join(",", providers),
                    process.command(),
                    process.stopped() ? " (stopped)" : ""));
        }
        return page.toString();
    }

    /** One process. */
    static String of(Figures process, long nowMillis) {
        StringBuilder page = new StringBuilder();
        page.append(String.format(
                "PID %d: %s, Java %s, up %s%s%n",
                process.pid(),
                process.command(),
                process.javaVersion(),
                up(process.startedMillis(), nowMillis),
                process.stopped() ? ", STOPPED by a signal or a debugger" : ""));
        process.providers().forEach(provider -> page.append(line(provider)));
        reasons(process).forEach((why, count) -> page.append(String.format("  %s (connections: %d)%n", why, count)));
        loops(page, process.loops());
        connections(page, process);
        errors(page, process);
        return page.toString();
    }

    private static String line(ProviderReading provider) {
        return String.format(
                Locale.ROOT,
                "provider %s (%s): %.1f MiB registered, connections: %d open, %d so far, %d lost%s%n",
                provider.name(),
                provider.description(),
                provider.registeredBytes() / MEBIBYTE,
                provider.openConnections(),
                provider.connections(),
                provider.lostConnections(),
                provider.plainConnections() == 0
                        ? ""
                        : ", plain TCP: " + provider.openPlainConnections() + " open, " + provider.plainConnections()
                                + " so far");
    }

    private static Map<String, Integer> reasons(Figures process) {
        Map<String, Integer> reasons = new LinkedHashMap<>();
        process.connections()
                .forEach(connection -> reasons.merge(connection.provider() + ": " + connection.why(), 1, Integer::sum));
        return reasons;
    }

    private static void loops(StringBuilder page, List<Figures.Loop> loops) {
        page.append(String.format(
                "%n%-28s %-6s %10s %14s %7s %12s%n",
                "loop", "state", "polls/s", "completions/s", "spin %", "last turn"));
        for (Figures.Loop loop : loops) {
            page.append(String.format(
                    Locale.ROOT,
                    "%-28s %-6s %10.0f %14.0f %7.1f %9d ms%n",
                    loop.name(),
                    loop.state() == Figures.State.HANGS
                            ? "HANGS"
                            : loop.state().name().toLowerCase(Locale.ROOT),
                    loop.pollsPerSecond(),
                    loop.completionsPerSecond(),
                    loop.spinPercent(),
                    loop.lastTurnMillis()));
        }
    }

    private static void connections(StringBuilder page, Figures process) {
        page.append(String.format(
                "%n%-22s %-11s %-7s %11s %9s %9s %8s %8s %7s %7s %6s %9s %9s %8s%n",
                "peer",
                "phase",
                "framing",
                "credits o/i",
                "sent/s",
                "recv/s",
                "MB/s out",
                "MB/s in",
                "rdv out",
                "rdv in",
                "wait %",
                "p50 us",
                "p99 us",
                "idle s"));
        for (Figures.Connection connection : process.connections()) {
            page.append(line(connection));
            if (!connection.error().isEmpty()) {
                page.append(String.format("    %s %s%n", time(connection.errorMillis()), connection.error()));
            }
        }
        if (process.connectionsWithoutRow() > 0) {
            page.append(String.format(
                    "and %d more: %d have a row, as -Dorg.verbena.stat.connections says%n",
                    process.connectionsWithoutRow(), process.connectionRows()));
        }
    }

    private static String line(Figures.Connection connection) {
        return String.format(
                Locale.ROOT,
                "%-22s %-11s %-7s %11s %9.0f %9.0f %8.1f %8.1f %7d %7d %6.1f %9s %9s %8.1f%s%n",
                connection.peer().isEmpty() ? "?" : connection.peer(),
                connection.phase(),
                connection.framing(),
                // RAW has no credits.
                connection.window() == Integer.MAX_VALUE
                        ? "-"
                        : connection.credits() + "/" + connection.creditsGranted(),
                connection.messagesSentPerSecond(),
                connection.messagesReceivedPerSecond(),
                connection.bytesSentPerSecond() / MEGABYTE,
                connection.bytesReceivedPerSecond() / MEGABYTE,
                connection.rendezvousSent(),
                connection.rendezvousReceived(),
                connection.stalledPercent(),
                micros(connection.requests(), connection.p50Micros()),
                micros(connection.requests(), connection.p99Micros()),
                connection.idleMillis() / (double) MILLIS_PER_SECOND,
                connection.waitingMillis() > 0 ? "  waits for credits, " + connection.waitingMillis() + " ms" : "");
    }

    private static String micros(long requests, double micros) {
        return requests == 0 ? "-" : String.format(Locale.ROOT, "%.1f", micros);
    }

    private static void errors(StringBuilder page, Figures process) {
        if (process.lastErrors().isEmpty()) {
            return;
        }
        page.append(String.format("%nconnections that failed: %d, the latest first%n", process.failedConnections()));
        for (EndedReading ended : process.lastErrors()) {
            page.append(String.format(
                    "%s %s: %s%n", time(ended.atMillis()), ended.peer().isEmpty() ? "?" : ended.peer(), ended.why()));
        }
    }

    private static String time(long millis) {
        return LocalDateTime.ofInstant(Instant.ofEpochMilli(millis), ZoneId.systemDefault())
                .format(TIME);
    }

    private static String up(long startedMillis, long nowMillis) {
        if (startedMillis == 0) {
            return "?";
        }
        long seconds = Math.max(0, (nowMillis - startedMillis) / MILLIS_PER_SECOND);
        return seconds < 60
                ? seconds + " s"
                : seconds < 3600 ? seconds / 60 + " min" : seconds / 3600 + " h " + seconds % 3600 / 60 + " min";
    }
}
