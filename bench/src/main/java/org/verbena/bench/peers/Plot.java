package org.verbena.bench.peers;

import static java.nio.charset.StandardCharsets.UTF_8;
import static java.util.Objects.requireNonNull;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.ToDoubleFunction;
import java.util.stream.IntStream;

/**
 * Draws what {@code bench/peers} measured: each contender's ratio to one of them, by workload, as SVG on standard output.
 * A bar is the median of the rounds' ratios and the line on it their extremes; beside it is the CPU time of both.
 * Arguments: that contender, then each {@code rounds.tsv}.
 */
final class Plot {
    private static final int WIDTH = 760;
    private static final int TOP = 44;
    private static final int ROW = 22;
    private static final int GAP = 14;
    private static final int NAMES = 78;
    private static final int BARS = 190;
    private static final int BARS_END = 520;
    private static final int CPU = WIDTH - 10;

    /** The rounds of a contender with a workload, in order. */
    private final Map<String, Map<String, List<Result>>> byWorkload = new LinkedHashMap<>();

    private final String base;
    private final StringBuilder svg = new StringBuilder();

    private Plot(String base) {
        this.base = base;
    }

    public static void main(String... arguments) throws IOException {
        if (arguments.length < 2) {
            System.err.println("usage: bench/plot CONTENDER ROUNDS.TSV...");
            System.exit(2);
        }
        Plot plot = new Plot(arguments[0]);
        for (int i = 1; i < arguments.length; i++) {
            plot.read(Path.of(arguments[i]));
        }
        System.out.print(plot.draw());
    }

    private void read(Path file) throws IOException {
        for (String line : Files.readAllLines(file)) {
            String[] columns = line.split("\t", 3);
            byWorkload
                    .computeIfAbsent(columns[1], missing -> new LinkedHashMap<>())
                    .computeIfAbsent(columns[0], missing -> new ArrayList<>())
                    .add(Result.parse(columns[2].replace('\t', ' ')));
        }
    }

    private String draw() throws IOException {
        double longest = 1;
        int height = TOP;
        for (Map.Entry<String, Map<String, List<Result>>> workload : byWorkload.entrySet()) {
            for (String contender : workload.getValue().keySet()) {
                if (!contender.equals(base)) {
                    double[] ratios = ratios(workload.getKey(), contender);
                    longest = Math.max(longest, ratios[ratios.length - 1]);
                    height += ROW;
                }
            }
            height += GAP;
        }
        double scale = (BARS_END - BARS) / longest;
        int rounds =
                byWorkload.values().iterator().next().values().iterator().next().size();
        svg.append("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %1$d %2$d\" width=\"%1$d\" height=\"%2$d\" "
                        .formatted(WIDTH, height))
                .append(
                        "role=\"img\" aria-labelledby=\"t\">\n  <title id=\"t\">Ratios to %s, medians of %d rounds</title>\n"
                                .formatted(base, rounds));
        try (InputStream style = requireNonNull(Plot.class.getResourceAsStream("plot.css"))) {
            svg.append("  <style>\n")
                    .append(new String(style.readAllBytes(), UTF_8))
                    .append("  </style>\n");
        }
        text(NAMES, 16, "title", "Times as good as " + base);
        text(NAMES, 33, "small", "1 at a time: round trips; several at a time: messages a second");
        text(CPU, 16, "title end", "CPU s per million messages");
        text(CPU, 33, "small end", "its own, " + base + "’s");
        drawRows(scale);
        line("one", BARS + scale, TOP, BARS + scale, height - GAP);
        return svg.append("</svg>\n").toString();
    }

    private void drawRows(double scale) {
        int y = TOP;
        for (Map.Entry<String, Map<String, List<Result>>> workload : byWorkload.entrySet()) {
            text(8, y + 15, "title", workload.getKey().replace(" x", " × "));
            for (String contender : workload.getValue().keySet()) {
                if (contender.equals(base)) {
                    continue;
                }
                double[] ratios = ratios(workload.getKey(), contender);
                double median = median(ratios);
                double least = ratios[0];
                double most = ratios[ratios.length - 1];
                text(BARS - 8, y + 15, "small end", contender);
                svg.append("  <rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%s\" height=\"%d\"/>\n"
                        .formatted(median < 1 ? "slower" : "faster", BARS, y + 3, number(median * scale), ROW - 6));
                double middle = y + ROW / 2.0;
                line("range", BARS + least * scale, middle, BARS + most * scale, middle);
                text(
                        (int) (BARS + most * scale) + 6,
                        y + 15,
                        "small",
                        "%s (%s to %s)".formatted(number(median), number(least), number(most)));
                text(
                        CPU,
                        y + 15,
                        "small end",
                        "%s, %s"
                                .formatted(
                                        number(cpuSeconds(workload.getKey(), contender)),
                                        number(cpuSeconds(workload.getKey(), base))));
                y += ROW;
            }
            y += GAP;
        }
    }

    /** Of the rounds, sorted; above 1 the contender is better. */
    private double[] ratios(String workload, String contender) {
        List<Result> own = rounds(workload, contender);
        List<Result> others = rounds(workload, base);
        boolean oneAtATime = workload.endsWith(" x1");
        return IntStream.range(0, Math.min(own.size(), others.size()))
                .mapToDouble(round -> oneAtATime
                        ? others.get(round).p50() / own.get(round).p50()
                        : own.get(round).perSecond() / others.get(round).perSecond())
                .sorted()
                .toArray();
    }

    private double cpuSeconds(String workload, String contender) {
        ToDoubleFunction<Result> seconds = result -> result.cores() / result.perSecond() * 1e6;
        return median(rounds(workload, contender).stream()
                .mapToDouble(seconds)
                .sorted()
                .toArray());
    }

    private List<Result> rounds(String workload, String contender) {
        List<Result> rounds = requireNonNull(byWorkload.get(workload)).get(contender);
        if (rounds == null) {
            throw new IllegalArgumentException(contender + " has no round of " + workload);
        }
        return rounds;
    }

    private static double median(double[] sorted) {
        int middle = sorted.length / 2;
        return sorted.length % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
    }

    private void text(int x, int y, String kind, String text) {
        svg.append("  <text class=\"%s\" x=\"%d\" y=\"%d\">%s</text>\n".formatted(kind, x, y, text));
    }

    private void line(String kind, double x1, double y1, double x2, double y2) {
        svg.append("  <line class=\"%s\" x1=\"%s\" y1=\"%s\" x2=\"%s\" y2=\"%s\"/>\n"
                .formatted(kind, number(x1), number(y1), number(x2), number(y2)));
    }

    private static String number(double value) {
        return String.format(Locale.ROOT, value < 10 ? "%.2f" : value < 100 ? "%.1f" : "%.0f", value);
    }
}
