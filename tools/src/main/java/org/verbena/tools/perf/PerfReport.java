package org.verbena.tools.perf;

import java.io.PrintWriter;
import java.lang.reflect.RecordComponent;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.verbena.api.RdmaChannel;
import org.verbena.samples.command.Conditions;
import org.verbena.samples.command.Json;
import org.verbena.samples.command.WarmUp;
import picocli.CommandLine.ArgGroup;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** A mixin: prints figures as a table, line by line, as comma-separated values, or as one JSON object. */
final class PerfReport {
    @ArgGroup
    private @Nullable Format format;

    /** One of these; a table otherwise. */
    private static final class Format {
        @Option(names = "--json", required = true, description = "Print as JSON.")
        boolean json;

        @Option(names = "--csv", required = true, description = "Print as CSV, with a line of names first.")
        boolean csv;
    }

    @Spec(Spec.Target.MIXEE)
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandSpec spec;

    private final Map<String, @Nullable Object> members = new LinkedHashMap<>();
    private final List<Map<String, @Nullable Object>> rows = new ArrayList<>();

    /** Set once the connections are up: what connecting took is not of interest. */
    private @Nullable Conditions conditions;

    void begin(boolean isLatency, boolean isBidirectional, boolean isCompared, PerfOrigin origin, RdmaChannel channel) {
        conditions = new Conditions();
        members.putAll(components(origin));
        members.put("local", channel.localAddress());
        members.put("remote", channel.remoteAddress());
        if (isCsv()) {
            print(Arrays.stream(PerfFigures.class.getRecordComponents())
                    .map(RecordComponent::getName)
                    .collect(Collectors.joining(",", "", isCompared ? "," + Compared.NAMES : "")));
        } else if (!isJson()) {
            print("provider " + origin.provider() + ", " + channel.localAddress() + " to " + channel.remoteAddress()
                    + (isBidirectional ? " and back at once" : ""));
            print(
                    isLatency
                            ? "test        bytes      count    min us    p50 us    p90 us    p99 us  p99.9 us    max us    avg us"
                                    + "  stdev us  CPU s/M  heap B"
                            : "test        bytes      count       MB/s      per second    p50 us    p99 us  CPU s/M  heap B");
        }
    }

    /** Before each test with one size. */
    void warmedUp(WarmUp.Outcome outcome) {
        Objects.requireNonNull(conditions).add(outcome);
    }

    /**
     * A test with one size.
     *
     * @param percentiles percentile to microseconds, which JSON contains as well
     * @param compared a C program's result; null if none was requested
     */
    void row(PerfFigures figures, Map<Double, Double> percentiles, @Nullable Compared compared) {
        Map<String, @Nullable Object> row = components(figures);
        if (isCsv()) {
            String cells = row.values().stream().map(PerfReport::cell).collect(Collectors.joining(","));
            print(compared == null ? cells : cells + "," + compared.cells());
            if (compared != null && compared.figures() == null) {
                spec.commandLine().getErr().println(compared.line().strip()); // the line has no room for it
            }
        } else if (!isJson()) {
            print(figures.mode().equals("lat") ? latency(figures) : bandwidth(figures));
            if (compared != null) {
                print(compared.line());
            }
        }
        if (compared != null) {
            row.put("against", compared.members());
        }
        row.put("percentiles", percentiles);
        rows.add(row);
    }

    /** The components of a record, by name, in its order. */
    private static Map<String, @Nullable Object> components(Record record) {
        Map<String, @Nullable Object> values = new LinkedHashMap<>();
        for (RecordComponent component : record.getClass().getRecordComponents()) {
            try {
                values.put(component.getName(), component.getAccessor().invoke(record));
            } catch (ReflectiveOperationException impossible) {
                throw new IllegalStateException(impossible);
            }
        }
        return values;
    }

    private static String cell(@Nullable Object value) {
        return value instanceof Double number ? String.format(Locale.ROOT, "%.3f", number) : String.valueOf(value);
    }

    private static String latency(PerfFigures it) {
        return String.format(
                Locale.ROOT,
                "%-7s %9d %10d %9.2f %9.2f %9.2f %9.2f %9.2f %9.2f %9.2f %9.2f %8.2f %7.0f",
                it.test(),
                it.bytes(),
                it.count(),
                it.minMicros(),
                it.p50Micros(),
                it.p90Micros(),
                it.p99Micros(),
                it.p999Micros(),
                it.maxMicros(),
                it.averageMicros(),
                it.deviationMicros(),
                it.cpuSecondsPerMillion(),
                it.allocatedBytesEach());
    }

    private static String bandwidth(PerfFigures it) {
        return String.format(
                Locale.ROOT,
                "%-7s %9d %10d %10.1f %15.0f %9.1f %9.1f %8.2f %7.0f",
                it.test(),
                it.bytes(),
                it.count(),
                it.megabytesPerSecond(),
                it.perSecond(),
                it.p50Micros(),
                it.p99Micros(),
                it.cpuSecondsPerMillion(),
                it.allocatedBytesEach());
    }

    void end() {
        Conditions all = Objects.requireNonNull(conditions);
        if (isJson()) {
            members.put("conditions", all.members());
            members.put("tests", rows);
            spec.commandLine().getOut().print(Json.of(members));
            spec.commandLine().getOut().flush();
        } else if (!isCsv()) {
            print(all.line());
        }
    }

    private boolean isJson() {
        return format != null && format.json;
    }

    private boolean isCsv() {
        return format != null && format.csv;
    }

    private void print(String line) {
        PrintWriter out = spec.commandLine().getOut();
        out.println(line);
        out.flush();
    }
}
