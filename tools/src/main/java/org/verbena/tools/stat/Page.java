package org.verbena.tools.stat;

import java.math.BigDecimal;
import java.math.MathContext;
import java.time.Instant;
import java.time.LocalDateTime;
import java.time.ZoneId;
import java.time.format.DateTimeFormatter;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.verbena.transport.ClientStatistics;
import org.verbena.transport.stat.EndedReading;
import org.verbena.transport.stat.ProcessReading;
import org.verbena.transport.stat.ProviderReading;

/** The text that {@code stat} prints for people. */
final class Page {
    private static final DateTimeFormatter TIME = DateTimeFormatter.ofPattern("MM-dd HH:mm:ss", Locale.ROOT);
    private static final double MEBIBYTE = 1 << 20;
    private static final double MEGABYTE = 1e6;
    private static final double KILOBYTE = 1e3;
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
        clients(page, process.clients());
        errors(page, process);
        return page.toString();
    }

    private static String line(ProviderReading provider) {
        return String.format(
                Locale.ROOT,
                "provider %s (%s): %.1f MiB registered, connections: %d open, %d so far, %d lost%s%s%n",
                provider.name(),
                provider.description(),
                provider.registeredBytes() / MEBIBYTE,
                provider.openConnections(),
                provider.connections(),
                provider.lostConnections(),
                provider.plainConnections() == 0
                        ? ""
                        : ", plain TCP: " + provider.openPlainConnections() + " open, " + provider.plainConnections()
                                + " so far",
                provider.waitingRequests() == 0
                        ? ""
                        : ", requests that wait for a handler: " + provider.waitingRequests());
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
                "%n%-22s %-11s %-7s %11s %9s %9s %8s %8s %9s %7s %7s %6s %9s %9s %8s%n",
                "peer",
                "phase",
                "framing",
                "credits o/i",
                "sent/s",
                "recv/s",
                "MB/s out",
                "MB/s in",
                "queued KB",
                "rdv out",
                "rdv in",
                "wait %",
                "p50 us",
                "p99 us",
                "idle s"));
        List<Figures.Connection> slowestFirst = process.connections().stream()
                .sorted(Comparator.comparingLong(Figures.Connection::queuedBytes)
                        .reversed())
                .toList();
        for (Figures.Connection connection : slowestFirst) {
            page.append(line(connection));
            if (connection.missedBroadcasts() > 0) {
                page.append(String.format("    has missed %d broadcasts%n", connection.missedBroadcasts()));
            }
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
                "%-22s %-11s %-7s %11s %9.0f %9.0f %8.1f %8.1f %9.0f %7d %7d %6.1f %9s %9s %8.1f%s%s%n",
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
                Math.ceil(connection.queuedBytes() / KILOBYTE),
                connection.rendezvousSent(),
                connection.rendezvousReceived(),
                connection.stalledPercent(),
                micros(connection.requests(), connection.p50Micros()),
                micros(connection.requests(), connection.p99Micros()),
                connection.idleMillis() / (double) MILLIS_PER_SECOND,
                connection.waitingMillis() > 0 ? "  waits for credits, " + connection.waitingMillis() + " ms" : "",
                connection.label().isEmpty() ? "" : "  " + connection.label());
    }

    /** With two digits: it is known to an eighth. */
    private static String micros(long requests, double micros) {
        if (requests == 0) {
            return "-";
        }
        return micros < 10
                ? String.format(Locale.ROOT, "%.1f", micros)
                : new BigDecimal(micros)
                        .round(new MathContext(2))
                        .toBigInteger()
                        .toString();
    }

    private static void clients(StringBuilder page, List<ClientStatistics> clients) {
        if (clients.isEmpty()) {
            return;
        }
        page.append(String.format(
                "%n%-28s %-11s %7s %10s %9s %7s %7s %7s %7s%n",
                "client of", "state", "waiting", "waiting KB", "connected", "failed", "retries", "hedges", "late"));
        for (ClientStatistics client : clients) {
            page.append(String.format(
                    Locale.ROOT,
                    "%-28s %-11s %7d %10.0f %9d %7d %7d %7d %7d%n",
                    client.target(),
                    client.state(),
                    client.waitingRequests(),
                    Math.ceil(client.waitingBytes() / KILOBYTE),
                    client.connections(),
                    client.failedAttempts(),
                    client.retries(),
                    client.hedges(),
                    client.lateReplies()));
            if (!client.lastFailure().isEmpty()) {
                page.append(String.format("    the last failure: %s%n", client.lastFailure()));
            }
        }
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
