package org.verbena.bench.stack;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * Draws what {@code bench/stack} measured, as SVG: a row for each layer, by provider and window. A bar begins where the
 * layer that it is on ends, so its length is the layer's share; gRPC's are cut off.
 */
final class StackPlot {
    private static final int WIDTH = 760;
    private static final int TOP = 44;
    private static final int ROW = 20;
    private static final int HEAD = 24;
    private static final int GAP = 12;
    private static final int BARS = 190;
    private static final int BARS_END = 560;
    private static final int HEAP = WIDTH - 10;

    private static final String STYLE = """
                text { font: 14px system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif; fill: #1f2328; }
                .title { font-weight: 650; }
                .small { font-size: 12px; fill: #5a6370; }
                .end { text-anchor: end; }
                .below { fill: #e3e6ea; }
                .share { fill: #a58ae0; }
                .range { stroke: #1f2328; stroke-width: 1.5; }
                @media (prefers-color-scheme: dark) {
                  text { fill: #dfe3e8; }
                  .small { fill: #9aa4b2; }
                  .below { fill: #30363d; }
                  .share { fill: #6f54b5; }
                  .range { stroke: #dfe3e8; }
                }
            """;

    private final Costs costs;
    private final StringBuilder svg = new StringBuilder();

    StackPlot(Costs costs) {
        this.costs = costs;
    }

    private record Section(String provider, int window) {
        String title() {
            String on = switch (provider) {
                case "verbs" -> "Provider verbs on the stub library";
                case ProtocolLayer.MEMORY -> "Endpoints in memory";
                default -> "Provider " + provider;
            };
            return on + ", " + window + (window == 1 ? " message at a time" : " messages at a time");
        }
    }

    /** The sections that were measured, each with its layers. */
    private Map<Section, List<Cell>> sections() {
        Map<Section, List<Cell>> sections = new LinkedHashMap<>();
        for (int window : Stack.WINDOWS) {
            for (Cell cell : Cell.all()) {
                String provider = cell.provider().equals(Cell.STUB) ? "verbs" : cell.provider();
                if (costs.has(cell, window)) {
                    sections.computeIfAbsent(new Section(provider, window), missing -> new ArrayList<>())
                            .add(cell);
                }
            }
        }
        return sections;
    }

    String draw() {
        Map<Section, List<Cell>> sections = sections();
        double longest = 1;
        int height = TOP;
        for (Map.Entry<Section, List<Cell>> section : sections.entrySet()) {
            for (Cell cell : section.getValue()) {
                if (!cell.name().equals("grpc")) {
                    longest = Math.max(
                            longest, costs.nanos(cell, section.getKey().window).median());
                }
            }
            height += HEAD + ROW * section.getValue().size() + GAP;
        }
        double scale = (BARS_END - BARS) / longest;
        svg.append("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %1$d %2$d\" width=\"%1$d\" height=\"%2$d\" "
                        .formatted(WIDTH, height))
                .append(
                        "role=\"img\" aria-labelledby=\"t\">\n  <title id=\"t\">What each layer adds, medians of %d rounds</title>\n"
                                .formatted(costs.rounds()))
                .append("  <style>\n")
                .append(STYLE)
                .append("  </style>\n");
        text(8, 16, "title", "Processor time of a message of 64 bytes, both of its ends, one way");
        text(8, 33, "small", "grey: the layers below; the number: ns of all, and what this layer adds");
        text(HEAP, 33, "small end", "bytes of heap");
        int y = TOP;
        for (Map.Entry<Section, List<Cell>> section : sections.entrySet()) {
            text(8, y + 17, "title", section.getKey().title());
            y += HEAD;
            for (Cell cell : section.getValue()) {
                row(cell, section.getKey().window, y, scale);
                y += ROW;
            }
            y += GAP;
        }
        return svg.append("</svg>\n").toString();
    }

    private void row(Cell cell, int window, int y, double scale) {
        Costs.Nanos nanos = costs.nanos(cell, window);
        Cell base = cell.base();
        double below = base == null || !costs.has(base, window)
                ? 0
                : Math.min(nanos.median(), costs.nanos(base, window).median());
        double start = BARS + below * scale;
        double end = Math.min(BARS_END, BARS + nanos.median() * scale);
        text(BARS - 8, y + 14, "small end", cell.title());
        bar("below", BARS, start, y);
        bar("share", start, end, y);
        if (nanos.most() * scale <= BARS_END - BARS) {
            line(BARS + nanos.least() * scale, BARS + nanos.most() * scale, y + ROW / 2.0);
        }
        text(
                (int) Math.max(end, Math.min(BARS_END, BARS + nanos.most() * scale)) + 6,
                y + 14,
                "small",
                below == 0
                        ? "%.0f".formatted(nanos.median())
                        : "%.0f, + %.0f".formatted(nanos.median(), nanos.median() - below));
        text(HEAP, y + 14, "small end", "%.0f".formatted(costs.heapBytes(cell, window)));
    }

    private void bar(String kind, double from, double to, int y) {
        svg.append("  <rect class=\"%s\" x=\"%s\" y=\"%d\" width=\"%s\" height=\"%d\"/>\n"
                .formatted(kind, number(from), y + 3, number(to - from), ROW - 6));
    }

    private void line(double from, double to, double y) {
        svg.append("  <line class=\"range\" x1=\"%s\" y1=\"%s\" x2=\"%s\" y2=\"%s\"/>\n"
                .formatted(number(from), number(y), number(to), number(y)));
    }

    private void text(int x, int y, String kind, String text) {
        svg.append("  <text class=\"%s\" x=\"%d\" y=\"%d\">%s</text>\n".formatted(kind, x, y, text));
    }

    private static String number(double value) {
        return String.format(Locale.ROOT, "%.1f", value);
    }
}
