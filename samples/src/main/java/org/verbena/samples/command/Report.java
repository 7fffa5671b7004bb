package org.verbena.samples.command;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/**
 * A command's results: text that is printed at once or, with {@code --json}, one JSON object at the end. A mixin for
 * commands that print figures. Not thread-safe.
 */
public final class Report {
    @Option(names = "--json", description = "Print the figures as JSON.")
    private boolean json;

    @Spec(Spec.Target.MIXEE)
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandSpec spec;

    private final Map<String, @Nullable Object> members = new LinkedHashMap<>();
    private final List<Measurement.Figures> operations = new ArrayList<>();

    public boolean isJson() {
        return json;
    }

    /** Prints a line for people. */
    public void line(String text) {
        if (!json) {
            print(text + "\n");
        }
    }

    /** Adds a figure for programs. */
    public Report member(String name, @Nullable Object value) {
        members.put(name, value);
        return this;
    }

    /** Prints a row of the table of operations; the first also prints the table's header. */
    public void row(String operation, Measurement measurement, long bytesEach) {
        if (operations.isEmpty()) {
            line(Measurement.header());
        }
        operations.add(measurement.figures(operation, bytesEach));
        line(measurement.row(operation, bytesEach));
    }

    /** Ends the results: prints the object. */
    public void end() {
        if (json) {
            if (!operations.isEmpty()) {
                members.put("operations", operations);
            }
            print(Json.of(members));
        }
    }

    private void print(String text) {
        PrintWriter out = spec.commandLine().getOut();
        out.print(text);
        out.flush();
    }
}
