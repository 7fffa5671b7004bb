package org.verbena.tools.perf;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import javax.imageio.ImageIO;
import javax.xml.parsers.DocumentBuilderFactory;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.tools.VerbenaProcess;
import org.w3c.dom.Document;

/** {@code perf client --plot}. */
@Timeout(240)
class PerfPlotTest {
    private static final PerfOrigin ORIGIN =
            new PerfOrigin("soft", "a-host, 2 x CPU", "2026-11-26", "Verbena 1, Java 25");

    private static PerfRuns perf;

    @TempDir
    private Path folder;

    @BeforeAll
    static void serve() throws Exception {
        perf = new PerfRuns();
    }

    @AfterAll
    static void stop() {
        perf.close();
    }

    @ParameterizedTest
    @ValueSource(strings = {"--lat", "--bw"})
    void drawsAnEarlierRunBesideThisOne(String mode) throws Exception {
        Path earlier = folder.resolve("before.json");
        Files.writeString(earlier, perf.run(0, "-t", "message", mode, "--json"));
        assertThat(coloursDrawn(mode, "-t", "message")).hasSize(1);
        assertThat(coloursDrawn(mode, "-t", "message,read", "--plot-with", earlier.toString()))
                .hasSize(3);
    }

    /** Of the curves: all else is black, white or grey. */
    private Set<String> coloursDrawn(String... arguments) throws IOException {
        Path file = folder.resolve("picture.svg");
        List<String> all = new ArrayList<>(List.of(arguments));
        all.addAll(List.of("--plot", file.toString()));
        perf.run(0, all.toArray(String[]::new));
        String svg = Files.readString(file);
        assertThat(svg).startsWith("<?xml").contains("</svg");
        return Pattern.compile("stroke:rgb\\((\\d+),(?!\\1,\\1)\\d+,\\d+\\)")
                .matcher(svg)
                .results()
                .map(MatchResult::group)
                .collect(Collectors.toSet());
    }

    @Test
    void drawsPngWithoutADisplay() throws Exception {
        Path file = folder.resolve("picture.PNG");
        ProcessBuilder client = new ProcessBuilder(VerbenaProcess.commandLine(
                perf.arguments("-t", "read", "--plot", file.toString()).toArray(String[]::new)));
        client.environment().put("DISPLAY", ":4711");
        assertThat(end(client)).isEqualTo("0 ");
        assertThat(ImageIO.read(file.toFile()).getWidth()).isEqualTo(1000);
    }

    @ParameterizedTest
    @ValueSource(strings = {"svg", "png"})
    void saysWhatIsMissingWithoutFonts(String format) throws Exception {
        Path none = Files.createDirectories(folder.resolve("none"));
        Path settings = Files.writeString(
                folder.resolve("fonts.conf"), "<fontconfig><cachedir>" + none + "</cachedir></fontconfig>");
        List<String> command = VerbenaProcess.commandLine(
                perf.arguments("--plot", folder.resolve("picture." + format).toString())
                        .toArray(String[]::new));
        command.add(1, "-Duser.home=" + none); // where the JDK keeps what fontconfig once said
        ProcessBuilder client = new ProcessBuilder(command);
        client.environment().put("FONTCONFIG_FILE", settings.toString());
        assertThat(end(client))
                .startsWith("1 perf client: --plot needs the JDK's module java.desktop, fontconfig and a font")
                .hasLineCount(1);
    }

    private static String end(ProcessBuilder client) throws IOException, InterruptedException {
        Process process = client.redirectOutput(ProcessBuilder.Redirect.DISCARD).start();
        String errors = new String(process.getErrorStream().readAllBytes(), StandardCharsets.UTF_8);
        return process.waitFor() + " " + errors;
    }

    @Test
    void drawsWhatHasOnePointAndNothingButZero() throws Exception {
        TreeMap<Double, Double> percentiles = new TreeMap<>();
        percentiles.put(100.0, 0.0);
        PerfCurve once = new PerfCurve("", "read", true, 1, 1, 0, percentiles);
        assertThat(new String(new PerfChart(true, ORIGIN, List.of(once, once)).encode(true), StandardCharsets.UTF_8))
                .contains("</svg");
        PerfCurve none = new PerfCurve("", "read", false, 1 << 30, 1, 0, percentiles);
        assertThat(new String(new PerfChart(false, ORIGIN, List.of(none, none)).encode(true), StandardCharsets.UTF_8))
                .contains("</svg");
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void saysWhereItsFiguresComeFrom(boolean isLatency) throws Exception {
        TreeMap<Double, Double> percentiles = new TreeMap<>(Map.of(0.0, 10.0, 99.0, 20.0, 100.0, 30.0));
        List<PerfCurve> curves = List.of(
                new PerfCurve("", "read", isLatency, 64, 100, 5, percentiles),
                new PerfCurve("", "read", isLatency, 1 << 20, 100, 5000, percentiles));
        String svg = new String(new PerfChart(isLatency, ORIGIN, curves).encode(true), StandardCharsets.UTF_8);
        DocumentBuilderFactory parsers = DocumentBuilderFactory.newInstance();
        parsers.setNamespaceAware(true);
        parsers.setFeature("http://apache.org/xml/features/nonvalidating/load-external-dtd", false);
        Document parsed =
                parsers.newDocumentBuilder().parse(new ByteArrayInputStream(svg.getBytes(StandardCharsets.UTF_8)));
        assertThat(parsed.getElementsByTagName("desc").item(0).getTextContent()).isEqualTo(ORIGIN.text());
        Map<String, String> metadata = Map.of(
                "date", "2026-11-26",
                "subject", "soft",
                "source", "a-host, 2 x CPU",
                "creator", "Verbena 1, Java 25");
        metadata.forEach(
                (name, value) -> assertThat(parsed.getElementsByTagNameNS("http://purl.org/dc/elements/1.1/", name)
                                .item(0)
                                .getTextContent())
                        .as(name)
                        .isEqualTo(value));
        assertThat(PerfOrigin.now("soft").text())
                .startsWith("soft on ")
                .contains("Verbena ", "Java ", " x ")
                .containsPattern("\\d{4}-\\d\\d-\\d\\d");
    }

    /** Points that are a factor apart are a distance apart. The last one is the legend's. */
    @Test
    void drawsBandwidthsOnLogarithmicAxes() throws Exception {
        TreeMap<Double, Double> percentiles = new TreeMap<>(Map.of(100.0, 30.0));
        List<PerfCurve> curves = new ArrayList<>();
        for (int power = 0; power <= 20; power += 4) {
            curves.add(new PerfCurve("", "read", false, 1 << power, 100, Math.pow(10, power / 4 - 1), percentiles));
        }
        String svg = new String(new PerfChart(false, ORIGIN, curves).encode(true), StandardCharsets.UTF_8);
        List<double[]> points = Pattern.compile("<circle cx=\"([\\d.]+)\" cy=\"([\\d.]+)\"")
                .matcher(svg)
                .results()
                .map(found -> new double[] {Double.parseDouble(found.group(1)), Double.parseDouble(found.group(2))})
                .toList();
        assertThat(points).hasSize(curves.size() + 1);
        for (int i = 2; i < curves.size(); i++) {
            for (int axis : new int[] {0, 1}) {
                double step = points.get(i)[axis] - points.get(i - 1)[axis];
                assertThat(step).isCloseTo(points.get(1)[axis] - points.get(0)[axis], within(0.5));
            }
        }
    }

    @Test
    void refusesWhatIsNoEarlierRunOfItsKind() throws Exception {
        String picture = folder.resolve("picture.svg").toString();
        Path bandwidths = folder.resolve("bw.json");
        Files.writeString(bandwidths, perf.run(0, "-t", "write", "--bw", "--json"));
        perf.run(2, "--plot", picture, "--plot-with", bandwidths.toString());
        assertThat(perf.errors()).contains("has bandwidths, not latencies: this run would need --bw");
        for (String other : new String[] {"", "[]", "{\"tests\": 7}", "{\"tests\": [{\"test\": \"read\"}]}"}) {
            Files.writeString(bandwidths, other);
            perf.run(1, "--plot", picture, "--plot-with", bandwidths.toString());
            assertThat(perf.errors()).contains("this is not what perf client prints with --json");
        }
        perf.run(
                1, "--plot", picture, "--plot-with", folder.resolve("none.json").toString());
        assertThat(perf.errors()).contains("none.json");
        perf.run(2, "--plot-with", bandwidths.toString());
        assertThat(perf.errors()).contains("--plot-with goes with --plot");
        perf.run(2, "--plot", folder.resolve("picture.gif").toString());
        assertThat(perf.errors()).contains("ends in .svg or .png");
        perf.run(2, "--plot", folder.resolve("missing/picture.svg").toString());
        assertThat(perf.errors()).contains("there is no folder");
    }
}
