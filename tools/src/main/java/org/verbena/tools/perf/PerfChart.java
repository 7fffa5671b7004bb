package org.verbena.tools.perf;

import java.awt.BasicStroke;
import java.awt.Color;
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
import java.util.TreeMap;
import javax.imageio.ImageIO;
import javax.xml.XMLConstants;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.parsers.ParserConfigurationException;
import org.apache.batik.svggen.SVGGraphics2D;
import org.knowm.xchart.BitmapEncoder;
import org.knowm.xchart.XYChart;
import org.knowm.xchart.XYChartBuilder;
import org.knowm.xchart.XYSeries;
import org.knowm.xchart.style.Styler;
import org.knowm.xchart.style.XYStyler;
import org.knowm.xchart.style.markers.SeriesMarkers;
import org.w3c.dom.Document;
import org.w3c.dom.Element;

/** A picture of latencies by percentile or of bandwidths by size. Needs fonts, but no display. */
final class PerfChart {
    private static final int WIDTH = 1000;
    private static final int HEIGHT = 600;

    /** A nanosecond: what a logarithmic axis shows for 0. */
    private static final double MIN_MICROS = 1e-3;

    /** What a logarithmic axis shows for less. */
    private static final double MIN_MEGABYTES = 1e-3;

    private static final String SVG = "http://www.w3.org/2000/svg";
    private static final String DUBLIN_CORE = "http://purl.org/dc/elements/1.1/";

    static {
        // Before AWT is first used: with a DISPLAY that does not answer it would fail otherwise.
        System.setProperty("java.awt.headless", "true");
    }

    /** Distinct for the colour-blind as well, and dark enough on white. */
    private static final Color[] COLORS = {
        new Color(0x0072B2),
        new Color(0xD55E00),
        new Color(0x007A5A),
        new Color(0xB0457F),
        new Color(0x5B3A8E),
        new Color(0x8A5A00)
    };

    /** With more curves than colours, the colours repeat with other strokes. */
    private static final float[][] DASHES = {{1, 0}, {9, 4}, {2, 3}, {12, 4, 2, 4}};

    private static final float STROKE = 2;

    private final XYChart chart;
    private final String title;
    private final PerfOrigin origin;

    /**
     * Lays it out.
     *
     * @param isLatency whether to draw latencies, or bandwidths
     * @param origin where this run's figures come from
     * @param curves what to draw; at least one
     */
    PerfChart(boolean isLatency, PerfOrigin origin, List<PerfCurve> curves) {
        this.origin = origin;
        title = isLatency ? "verbena perf: latency by percentile" : "verbena perf: bandwidth by size";
        chart = new XYChartBuilder()
                .width(WIDTH)
                .height(HEIGHT)
                .title(title)
                .xAxisTitle((isLatency ? "percentile" : "size") + "  (" + origin.text() + ")")
                .yAxisTitle(isLatency ? "microseconds" : "MB/s")
                .build();
        chart.getStyler().setLegendPosition(Styler.LegendPosition.OutsideE);
        chart.getStyler().setChartBackgroundColor(Color.WHITE);
        chart.getStyler().setLegendBorderColor(Color.WHITE);
        chart.getStyler().setPlotGridLinesColor(new Color(0xDDDDDD));
        if (isLatency) {
            drawLatencies(curves);
        } else {
            drawBandwidths(curves);
        }
        int drawn = 0;
        for (XYSeries series : chart.getSeriesCollection()) {
            Color color = COLORS[drawn % COLORS.length];
            float[] dash = DASHES[drawn / COLORS.length % DASHES.length];
            series.setLineColor(color);
            series.setMarkerColor(color);
            series.setLineStyle(new BasicStroke(STROKE, BasicStroke.CAP_BUTT, BasicStroke.JOIN_ROUND, 1, dash, 0));
            drawn++;
        }
    }

    /** Throws AWT's exception if a library or all fonts are missing. */
    static void checkFonts() {
        new TextLayout("0", new Font(Font.SANS_SERIF, Font.PLAIN, 12), new FontRenderContext(null, true, true));
    }

    /** As HdrHistogram's plotter: each tenfold on the x axis is another nine. */
    private void drawLatencies(List<PerfCurve> curves) {
        double max = 10;
        double minMicros = Double.MAX_VALUE;
        double maxMicros = 0;
        for (PerfCurve curve : curves) {
            double count = Math.max(1, curve.count());
            List<Double> x = new ArrayList<>();
            List<Double> micros = new ArrayList<>();
            curve.percentiles().forEach((percentile, at) -> {
                double rest = 1 - percentile / 100;
                x.add(Math.min(rest > 0 ? 1 / rest : count, count));
                micros.add(Math.max(at, MIN_MICROS));
            });
            max = Math.max(max, x.getLast());
            minMicros = Math.min(minMicros, micros.getFirst());
            maxMicros = Math.max(maxMicros, micros.getLast());
            chart.addSeries(unique(curve.run() + curve.test() + " " + size(curve.bytes())), x, micros)
                    .setMarker(SeriesMarkers.NONE);
        }
        XYStyler styler = chart.getStyler();
        styler.setXAxisLogarithmic(true).setYAxisLogarithmic(true);
        // Whole decades: an axis without one of them would have no number.
        styler.setXAxisMin(1.0).setXAxisMax(decadeFrom(max));
        double bottom = decadeTo(minMicros);
        styler.setYAxisMin(bottom).setYAxisMax(Math.max(10 * bottom, decadeFrom(maxMicros)));
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
                sizes.stream().map(it -> log2(it.bytes())).toList(),
                sizes.stream()
                        .map(it -> Math.max(it.megabytesPerSecond(), MIN_MEGABYTES))
                        .toList()));
        double min = Double.MAX_VALUE;
        double max = 0;
        int smallest = Integer.MAX_VALUE;
        int largest = 0;
        for (PerfCurve curve : curves) {
            min = Math.min(min, Math.max(curve.megabytesPerSecond(), MIN_MEGABYTES));
            max = Math.max(max, curve.megabytesPerSecond());
            smallest = Math.min(smallest, curve.bytes());
            largest = Math.max(largest, curve.bytes());
        }
        XYStyler styler = chart.getStyler();
        // Powers of two: an axis of XChart's would have powers of ten.
        styler.setXAxisMin(Math.floor(log2(smallest)))
                .setXAxisMax(Math.max(Math.floor(log2(smallest)) + 1, Math.ceil(log2(largest))));
        styler.setXAxisTickLabelsFormattingFunction(power ->
                power >= 0 && power < Integer.SIZE - 1 && power == Math.rint(power) ? size(1 << power.intValue()) : "");
        styler.setYAxisLogarithmic(true);
        double bottom = decadeTo(min);
        styler.setYAxisMin(bottom).setYAxisMax(Math.max(10 * bottom, decadeFrom(Math.max(max, min))));
        styler.setYAxisTickLabelsFormattingFunction(y -> plain(BigDecimal.valueOf(y)));
    }

    private static double log2(int bytes) {
        return Math.log(bytes) / Math.log(2);
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

    /** XChart requires unique names. */
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
                Element root = graphics.getRoot();
                root.insertBefore(metadata(root.getOwnerDocument()), root.getFirstChild());
                root.insertBefore(element(root.getOwnerDocument(), "desc", origin.text()), root.getFirstChild());
                root.insertBefore(element(root.getOwnerDocument(), "title", title), root.getFirstChild());
                graphics.stream(root, writer, true, false);
            }
        } else {
            RenderedImage image = BitmapEncoder.getBufferedImage(chart);
            ImageIO.write(image, "png", out);
        }
        return out.toByteArray();
    }

    /** For programs that catalogue pictures. */
    private Element metadata(Document document) {
        Element metadata = document.createElementNS(SVG, "metadata");
        metadata.setAttributeNS(XMLConstants.XMLNS_ATTRIBUTE_NS_URI, "xmlns:dc", DUBLIN_CORE);
        Map<String, String> values = Map.of(
                "title", title,
                "description", origin.text(),
                "date", origin.date(),
                "creator", origin.version(),
                "source", origin.machine(),
                "subject", origin.provider());
        new TreeMap<>(values).forEach((name, value) -> {
            Element one = document.createElementNS(DUBLIN_CORE, "dc:" + name);
            one.setTextContent(value);
            metadata.appendChild(one);
        });
        return metadata;
    }

    private static Element element(Document document, String name, String text) {
        Element element = document.createElementNS(SVG, name);
        element.setTextContent(text);
        return element;
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
