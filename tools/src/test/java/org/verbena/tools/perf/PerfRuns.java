package org.verbena.tools.perf;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.ArrayList;
import java.util.List;
import org.verbena.samples.ServerProcess;
import org.verbena.tools.Main;
import org.verbena.tools.VerbenaProcess;
import picocli.CommandLine;

/** A {@code perf server} in a process of its own, on soft, and short runs of {@code perf client} in this one. */
final class PerfRuns implements AutoCloseable {
    private final ServerProcess server;
    private StringWriter err = new StringWriter();

    PerfRuns(String... serverOptions) throws IOException {
        List<String> all = new ArrayList<>(List.of("perf", "server", "--provider", "soft", "--port", "0"));
        all.addAll(List.of(serverOptions));
        server = VerbenaProcess.startServer(all.toArray(String[]::new));
    }

    /** The server's. */
    long pid() {
        return server.pid();
    }

    /** What a client needs besides the arguments, so that it takes little time. */
    List<String> arguments(String... arguments) {
        List<String> all = new ArrayList<>(List.of("perf", "client", "--provider", "soft"));
        all.addAll(List.of(arguments));
        List<List<String>> defaults =
                List.of(List.of("-p", "" + server.port), List.of("--duration", "0.2"), List.of("--warm-up", "0.05"));
        defaults.stream().filter(option -> !all.contains(option.getFirst())).forEach(all::addAll);
        return all;
    }

    /** Runs a client, and returns what it prints. */
    String run(int exitCode, String... arguments) {
        String[] all = arguments(arguments).toArray(String[]::new);
        StringWriter out = new StringWriter();
        err = new StringWriter();
        CommandLine command = Main.commandLine(all);
        command.setOut(new PrintWriter(out)).setErr(new PrintWriter(err));
        assertThat(command.execute(all)).as("exit code; %s", err).isEqualTo(exitCode);
        return out.toString();
    }

    /** What the last run has printed on standard error. */
    String errors() {
        return err.toString();
    }

    /** The lines of a run with {@code --json}. */
    static List<JsonObject> tests(String json) {
        return JsonParser.parseString(json).getAsJsonObject().getAsJsonArray("tests").asList().stream()
                .map(JsonElement::getAsJsonObject)
                .toList();
    }

    @Override
    public void close() {
        server.close();
    }
}
