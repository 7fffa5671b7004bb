package org.verbena.tools.perf;

import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A C program's result beside perf's, or why there is none.
 *
 * @param tool the set of the program
 * @param program its name; null if there is none for this
 * @param figures its figures; null without them
 * @param reason why there are none; null with them
 * @param ratio perf's latency, or its bandwidth, divided by the program's; NaN without one
 */
record Compared(
        PerfTool tool,
        @Nullable String program,
        @Nullable ToolFigures figures,
        @Nullable String reason,
        double ratio) {

    /** Columns of CSV. */
    static final String NAMES = "against,againstP50Micros,againstAverageMicros,againstMegabytesPerSecond,ratio";

    static Compared failed(PerfTool tool, @Nullable String program, String reason) {
        return new Compared(tool, program, null, reason, Double.NaN);
    }

    static Compared of(PerfTool tool, ToolRun run, PerfFigures mine, ToolFigures its) {
        double ratio;
        if (!run.isLatency()) {
            ratio = mine.megabytesPerSecond() / its.megabytesPerSecond();
        } else if (Double.isNaN(its.typicalMicros())) {
            ratio = mine.averageMicros() / its.averageMicros();
        } else {
            ratio = mine.p50Micros() / its.typicalMicros();
        }
        return new Compared(tool, tool.program(run), its, null, ratio);
    }

    /** For a table: below the row of perf's own figures. */
    String line() {
        ToolFigures it = figures;
        if (it == null) {
            return "  " + tool + ": " + reason;
        }
        if (!Double.isNaN(it.megabytesPerSecond())) {
            return String.format(
                    Locale.ROOT,
                    "  %s: %.1f MB/s, %.0f per second; perf's MB/s are %.2f of that",
                    program,
                    it.megabytesPerSecond(),
                    it.perSecond(),
                    ratio);
        }
        return Double.isNaN(it.typicalMicros())
                ? String.format(
                        Locale.ROOT, "  %s: avg %.2f us; perf's is %.2f of that", program, it.averageMicros(), ratio)
                : String.format(
                        Locale.ROOT,
                        "  %s: p50 %.2f us, avg %.2f us; perf's p50 is %.2f of that",
                        program,
                        it.typicalMicros(),
                        it.averageMicros(),
                        ratio);
    }

    /** For CSV: empty fields where there is no value. */
    String cells() {
        ToolFigures it = figures;
        return it == null
                ? (program == null ? tool.toString() : program) + ",,,,"
                : String.join(
                        ",",
                        program,
                        cell(it.typicalMicros()),
                        cell(it.averageMicros()),
                        cell(it.megabytesPerSecond()),
                        cell(ratio));
    }

    private static String cell(double value) {
        return Double.isNaN(value) ? "" : String.format(Locale.ROOT, "%.3f", value);
    }

    /** For JSON: the values that exist. */
    Map<String, @Nullable Object> members() {
        Map<String, @Nullable Object> members = new LinkedHashMap<>();
        members.put("tool", tool.toString());
        if (program != null) {
            members.put("program", program);
        }
        ToolFigures it = figures;
        if (it == null) {
            members.put("reason", reason);
            return members;
        }
        put(members, "p50Micros", it.typicalMicros());
        put(members, "averageMicros", it.averageMicros());
        put(members, "megabytesPerSecond", it.megabytesPerSecond());
        put(members, "perSecond", it.perSecond());
        put(members, "ratio", ratio);
        return members;
    }

    private static void put(Map<String, @Nullable Object> members, String name, double value) {
        if (!Double.isNaN(value)) {
            members.put(name, value);
        }
    }
}
