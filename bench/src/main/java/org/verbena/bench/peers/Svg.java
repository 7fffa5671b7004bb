package org.verbena.bench.peers;

import static java.nio.charset.StandardCharsets.UTF_8;
import static java.util.Objects.requireNonNull;

import java.io.IOException;
import java.io.InputStream;
import java.util.Locale;

/** A picture that is being written, in the style of {@code plot.css}, whose classes are what is called kind here. */
final class Svg {
    private final StringBuilder svg = new StringBuilder();

    Svg(int width, int height, String title) throws IOException {
        svg.append("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %1$d %2$d\" width=\"%1$d\" height=\"%2$d\" "
                        .formatted(width, height))
                .append("role=\"img\" aria-labelledby=\"t\">\n  <title id=\"t\">%s</title>\n".formatted(title));
        try (InputStream style = requireNonNull(Svg.class.getResourceAsStream("plot.css"))) {
            svg.append("  <style>\n")
                    .append(new String(style.readAllBytes(), UTF_8))
                    .append("  </style>\n");
        }
    }

    void text(int x, int y, String kind, String text) {
        svg.append("  <text class=\"%s\" x=\"%d\" y=\"%d\">%s</text>\n".formatted(kind, x, y, text));
    }

    void line(String kind, double x1, double y1, double x2, double y2) {
        svg.append("  <line class=\"%s\" x1=\"%s\" y1=\"%s\" x2=\"%s\" y2=\"%s\"/>\n"
                .formatted(kind, number(x1), number(y1), number(x2), number(y2)));
    }

    void bar(String kind, double x, int y, double width, int height) {
        svg.append("  <rect class=\"%s\" x=\"%s\" y=\"%d\" width=\"%s\" height=\"%d\"/>\n"
                .formatted(kind, number(x), y, number(width), height));
    }

    String end() {
        return svg.append("</svg>\n").toString();
    }

    static String number(double value) {
        return String.format(Locale.ROOT, value < 10 ? "%.2f" : value < 100 ? "%.1f" : "%.0f", value);
    }
}
