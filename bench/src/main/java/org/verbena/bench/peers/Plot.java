package org.verbena.bench.peers;

import static org.verbena.bench.peers.Svg.number;

import java.io.IOException;
import java.nio.file.Path;

/**
 * Draws what {@code bench/peers} measured: each contender's ratio to one of them, by workload, as SVG on standard
 * output. A bar is the median of the rounds' ratios and the line on it their extremes; beside it is the CPU time of
 * both. Arguments: that contender, then each {@code rounds.tsv}; or {@code --overview} and the pairs of
 * {@link Overview}.
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

    private final String base;
    private final Rounds all = new Rounds();

    private Plot(String base) {
        this.base = base;
    }

    public static void main(String... arguments) throws IOException {
        if (arguments.length > 4 && arguments[0].equals("--overview") && arguments.length % 4 == 1) {
            Overview overview = new Overview();
            for (int i = 1; i < arguments.length; i += 4) {
                overview.add(arguments[i], arguments[i + 1], arguments[i + 2], Path.of(arguments[i + 3]));
            }
            System.out.print(overview.draw());
            return;
        }
        if (arguments.length < 2) {
            System.err.println("usage: bench/plot CONTENDER ROUNDS.TSV...");
            System.err.println("       bench/plot --overview {WHERE CONTENDER PEER ROUNDS.TSV}...");
            System.exit(2);
        }
        Plot plot = new Plot(arguments[0]);
        for (int i = 1; i < arguments.length; i++) {
            plot.all.read(Path.of(arguments[i]));
        }
        System.out.print(plot.draw());
    }

    private String draw() throws IOException {
        double longest = 1;
        int height = TOP;
        int rounds = 0;
        for (String workload : all.workloads()) {
            for (String contender : all.contenders(workload)) {
                if (!contender.equals(base)) {
                    double[] ratios = all.ratios(workload, contender, base);
                    rounds = Math.max(rounds, ratios.length);
                    longest = Math.max(longest, ratios[ratios.length - 1]);
                    height += ROW;
                }
            }
            height += GAP;
        }
        double scale = (BARS_END - BARS) / longest;
        Svg svg = new Svg(WIDTH, height, "Ratios to %s, medians of %d rounds".formatted(base, rounds));
        svg.text(NAMES, 16, "title", "Times as good as " + base);
        svg.text(NAMES, 33, "small", "1 at a time: round trips; several at a time: messages a second");
        svg.text(CPU, 16, "title end", "CPU s per million messages");
        svg.text(CPU, 33, "small end", "its own, " + base + "’s");
        drawRows(svg, scale);
        svg.line("one", BARS + scale, TOP, BARS + scale, height - GAP);
        return svg.end();
    }

    private void drawRows(Svg svg, double scale) {
        int y = TOP;
        for (String workload : all.workloads()) {
            svg.text(8, y + 15, "title", workload.replace(" x", " × "));
            for (String contender : all.contenders(workload)) {
                if (contender.equals(base)) {
                    continue;
                }
                double[] ratios = all.ratios(workload, contender, base);
                double median = Result.median(ratios);
                double min = ratios[0];
                double max = ratios[ratios.length - 1];
                svg.text(BARS - 8, y + 15, "small end", contender);
                svg.bar(median < 1 ? "slower" : "faster", BARS, y + 3, median * scale, ROW - 6);
                double middle = y + ROW / 2.0;
                svg.line("range", BARS + min * scale, middle, BARS + max * scale, middle);
                svg.text(
                        (int) (BARS + max * scale) + 6,
                        y + 15,
                        "small",
                        "%s (%s to %s)".formatted(number(median), number(min), number(max)));
                svg.text(
                        CPU,
                        y + 15,
                        "small end",
                        "%s, %s"
                                .formatted(
                                        number(all.cpuSeconds(workload, contender)),
                                        number(all.cpuSeconds(workload, base))));
                y += ROW;
            }
            y += GAP;
        }
    }
}
