package org.verbena.tools.perf;

import java.awt.Dimension;
import java.awt.Font;
import java.awt.font.FontRenderContext;
import java.awt.font.TextLayout;
import java.awt.image.RenderedImage;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStreamWriter;
import java.math.BigDecimal;
import java.math.MathContext;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import javax.imageio.ImageIO;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.parsers.ParserConfigurationException;
import org.apache.batik.svggen.SVGGraphics2D;
import org.knowm.xchart.BitmapEncoder;
import org.knowm.xchart.XYChart;
import org.knowm.xchart.XYChartBuilder;
import org.knowm.xchart.style.Styler;
import org.knowm.xchart.style.XYStyler;
import org.knowm.xchart.style.markers.SeriesMarkers;
import org.w3c.dom.Document;

/** A picture of latencies by percentile or of bandwidths by size. Needs fonts, but no display. */
final class PerfChart {
    private static final int WIDTH = 1000;
    private static final int HEIGHT = 600;

    /** A nanosecond: what a logarithmic axis shows for 0. */
    private static final double LEAST_MICROS = 1e-3;

    private static final String SVG = "http://www.w3.org/2000/svg";

    static {
        // Before AWT is first used: with a DISPLAY that does not answer it would fail otherwise.
        System.setProperty("java.awt.headless", "true");
    }

    private final XYChart chart;

    /**
     * Lays it out.
     *
     * @param isLatency whether to draw latencies, or bandwidths
     * @param curves what to draw; at least one
     */
    PerfChart(boolean isLatency, List<PerfCurve> curves) {
        chart = new XYChartBuilder()
                .width(WIDTH)
                .height(HEIGHT)
                .title(isLatency ? "verbena perf: latency" : "verbena perf: bandwidth")
                .xAxisTitle(isLatency ? "percentile" : "size")
                .yAxisTitle(isLatency ? "microseconds" : "MB/s")
                .build();
        chart.getStyler().setLegendPosition(Styler.LegendPosition.OutsideE);
        chart.getStyler().setChartBackgroundColor(java.awt.Color.WHITE);
        if (isLatency) {
            drawLatencies(curves);
        } else {
            drawBandwidths(curves);
        }
    }

    /** Throws what AWT throws where a library or all fonts are missing. */
    static void checkFonts() {
        new TextLayout("0", new Font(Font.SANS_SERIF, Font.PLAIN, 12), new FontRenderContext(null, true, true));
    }

    /** As HdrHistogram's plotter: each tenfold on the x axis is another nine. */
    private void drawLatencies(List<PerfCurve> curves) {
        double most = 10;
        double leastMicros = Double.MAX_VALUE;
        double mostMicros = 0;
        for (PerfCurve curve : curves) {
            double count = Math.max(1, curve.count());
            List<Double> x = new ArrayList<>();
            List<Double> micros = new ArrayList<>();
            curve.percentiles().forEach((percentile, at) -> {
                double rest = 1 - percentile / 100;
                x.add(Math.min(rest > 0 ? 1 / rest : count, count));
                micros.add(Math.max(at, LEAST_MICROS));
            });
            most = Math.max(most, x.getLast());
            leastMicros = Math.min(leastMicros, micros.getFirst());
            mostMicros = Math.max(mostMicros, micros.getLast());
            chart.addSeries(unique(curve.run() + curve.test() + " " + size(curve.bytes())), x, micros)
                    .setMarker(SeriesMarkers.NONE);
        }
        XYStyler styler = chart.getStyler();
        styler.setXAxisLogarithmic(true).setYAxisLogarithmic(true);
        // Whole decades: an axis without one of them would have no number.
        styler.setXAxisMin(1.0).setXAxisMax(decadeFrom(most));
        double bottom = decadeTo(leastMicros);
        styler.setYAxisMin(bottom).setYAxisMax(Math.max(10 * bottom, decadeFrom(mostMicros)));
        styler.setXAxisTickLabelsFormattingFunction(
                x -> plain(BigDecimal.valueOf(100).subtract(BigDecimal.valueOf(100 / x))) + " %");
        styler.setYAxisTickLabelsFormattingFunction(y -> plain(BigDecimal.valueOf(y)));
    }

    private void drawBandwidths(List<PerfCurve> curves) {
        Map<String, List<PerfCurve>> tests = new LinkedHashMap<>();
        for (PerfCurve curve : curves) {
            tests.computeIfAbsent(curve.run() + curve.test(), first -> new ArrayList<>())
                    .add(curve);
        }
        tests.forEach((name, sizes) -> chart.addSeries(
                name,
                sizes.stream().map(it -> Math.log(it.bytes()) / Math.log(2)).toList(),
                sizes.stream().map(PerfCurve::megabytesPerSecond).toList()));
        chart.getStyler().setYAxisMin(0.0);
        chart.getStyler()
                .setXAxisTickLabelsFormattingFunction(
                        power -> power >= 0 && power < Integer.SIZE - 1 && power == Math.rint(power)
                                ? size(1 << power.intValue())
                                : "");
    }

    private static double decadeFrom(double value) {
        return Math.pow(10, Math.ceil(Math.log10(value)));
    }

    private static double decadeTo(double value) {
        return Math.pow(10, Math.floor(Math.log10(value)));
    }

    private static String plain(BigDecimal number) {
        return number.round(new MathContext(9)).stripTrailingZeros().toPlainString();
    }

    private static String size(int bytes) {
        int unit = bytes % (1 << 20) == 0 ? 20 : bytes % (1 << 10) == 0 ? 10 : 0;
        return (bytes >> unit) + (unit == 20 ? " MiB" : unit == 10 ? " KiB" : " B");
    }

    /** XChart wants each name once. */
    private String unique(String name) {
        String tried = name;
        for (int i = 2; chart.getSeries(tried) != null; i++) {
            tried = name + " (" + i + ")";
        }
        return tried;
    }

    /** The picture, as SVG or PNG. */
    byte[] encode(boolean asSvg) throws IOException {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        if (asSvg) {
            try (OutputStreamWriter writer = new OutputStreamWriter(out, StandardCharsets.UTF_8)) {
                SVGGraphics2D graphics = new SVGGraphics2D(emptySvg());
                graphics.setSVGCanvasSize(new Dimension(WIDTH, HEIGHT));
                chart.paint(graphics, WIDTH, HEIGHT);
                graphics.stream(writer, true);
            }
        } else {
            RenderedImage image = BitmapEncoder.getBufferedImage(chart);
            ImageIO.write(image, "png", out);
        }
        return out.toByteArray();
    }

    private static Document emptySvg() {
        try {
            return DocumentBuilderFactory.newInstance()
                    .newDocumentBuilder()
                    .getDOMImplementation()
                    .createDocument(SVG, "svg", null);
        } catch (ParserConfigurationException impossible) {
            throw new IllegalStateException("the JDK's parser in its default configuration", impossible);
        }
    }
}
