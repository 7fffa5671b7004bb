package org.verbena.tools.perf;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;
import org.verbena.samples.command.CommandFailure;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** Command-line options that plot this run beside earlier ones. Not thread-safe. */
final class PerfPlot {
    @Option(
            names = "--plot",
            paramLabel = "FILE",
            description = "Draw the figures into an .svg or .png file: latency by percentile, or bandwidth by size.")
    private @Nullable Path file;

    @Option(
            names = "--plot-with",
            paramLabel = "FILE",
            description = "With --plot: draw an earlier run beside this one, from the JSON that it printed with --json;"
                    + " may be repeated.")
    private List<Path> earlier = List.of();

    @Spec(Spec.Target.MIXEE)
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandSpec spec;

    private final List<PerfCurve> curves = new ArrayList<>();
    private boolean isLatency;

    /**
     * Reads the earlier runs, and checks that the JVM can draw: before anything is measured.
     *
     * @param isLatency whether latencies are measured, as earlier runs must have
     */
    void prepare(boolean isLatency) throws IOException {
        this.isLatency = isLatency;
        if (file == null) {
            if (!earlier.isEmpty()) {
                throw wrong("--plot-with goes with --plot");
            }
            return;
        }
        if (!isSvg(file) && !file.toString().toLowerCase(Locale.ROOT).endsWith(".png")) {
            throw wrong("--plot takes a file name that ends in .svg or .png, not " + file);
        }
        Path folder = file.toAbsolutePath().getParent();
        if (folder == null || !Files.isDirectory(folder)) {
            throw wrong("--plot: there is no folder " + folder);
        }
        for (Path run : earlier) {
            read(run);
        }
        try {
            PerfChart.checkFonts();
        } catch (RuntimeException | LinkageError | InternalError failure) { // AWT's for a missing library
            throw new CommandFailure(
                    "--plot needs the JDK's module java.desktop, fontconfig and a font (Debian: apt-get install"
                            + " fontconfig libfreetype6 fonts-dejavu-core), for .svg as well: " + failure,
                    failure);
        }
    }

    private ParameterException wrong(String what) {
        return new ParameterException(spec.commandLine(), what);
    }

    private static boolean isSvg(Path file) {
        return file.toString().toLowerCase(Locale.ROOT).endsWith(".svg");
    }

    private void read(Path run) throws IOException {
        String file = String.valueOf(run.getFileName()).replaceFirst("\\.json$", "");
        try {
            JsonObject all = JsonParser.parseString(Files.readString(run)).getAsJsonObject();
            String name = file + " (" + all.get("provider").getAsString() + "): ";
            for (JsonElement test : all.getAsJsonArray("tests")) {
                PerfCurve curve = curve(name, test.getAsJsonObject());
                if (curve.isLatency() != isLatency) {
                    throw wrong("--plot-with " + run + " has " + (isLatency ? "bandwidths, not latencies" : "latencies")
                            + ": this run would need --" + (isLatency ? "bw" : "lat"));
                }
                curves.add(curve);
            }
        } catch (JsonParseException
                | IllegalStateException
                | ClassCastException
                | NullPointerException
                | NumberFormatException unlike) { // Gson throws each for a missing or wrong member
            throw new CommandFailure(
                    "--plot-with " + run + ": this is not what perf client prints with --json", unlike);
        }
    }

    private static PerfCurve curve(String run, JsonObject test) {
        NavigableMap<Double, Double> percentiles = new TreeMap<>();
        for (Map.Entry<String, JsonElement> at :
                test.getAsJsonObject("percentiles").entrySet()) {
            percentiles.put(Double.valueOf(at.getKey()), at.getValue().getAsDouble());
        }
        if (percentiles.isEmpty()) {
            throw new IllegalStateException("a test without percentiles");
        }
        return new PerfCurve(
                run,
                name(
                        test.get("test").getAsString(),
                        test.has("bidirectional") && test.get("bidirectional").getAsBoolean()),
                test.get("mode").getAsString().equals("lat"),
                test.get("bytes").getAsInt(),
                test.get("count").getAsLong(),
                test.get("megabytesPerSecond").getAsDouble(),
                percentiles);
    }

    private static String name(String test, boolean isBidirectional) {
        return isBidirectional ? test + ", both ways" : test;
    }

    /** One more test and size. */
    void add(PerfFigures figures, NavigableMap<Double, Double> percentiles) {
        curves.add(new PerfCurve(
                "",
                name(figures.test(), figures.bidirectional()),
                isLatency,
                figures.bytes(),
                figures.count(),
                figures.megabytesPerSecond(),
                percentiles));
    }

    /** Draws all of them, if the option is given. */
    void draw(PerfOrigin origin) throws IOException {
        if (file != null) {
            Files.write(file, new PerfChart(isLatency, origin, curves).encode(isSvg(file)));
        }
    }
}
