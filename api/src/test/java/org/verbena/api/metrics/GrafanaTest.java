package org.verbena.api.metrics;

import static org.assertj.core.api.Assertions.assertThat;

import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.RdmaEventLoopGroup;

/** What the dashboard and the alerts ask for is what a process has, by the names that Prometheus gives it. */
@Timeout(240)
class GrafanaTest {
    private static final Path DOCS = Path.of("..", "docs");
    private static final Pattern METRIC = Pattern.compile("\\bverbena_[a-z_]+");

    /** Of Prometheus' text format: a sample begins with its name. */
    private static final Pattern SAMPLE = Pattern.compile("^(verbena_[a-z_]+)\\{", Pattern.MULTILINE);

    private static Set<String> published() {
        PrometheusMeterRegistry registry = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
        try (RdmaEventLoopGroup group = new RdmaEventLoopGroup("soft", 1)) {
            new RdmaMetrics(group.provider()).bindTo(registry);
            Set<String> names = new TreeSet<>();
            Matcher sample = SAMPLE.matcher(registry.scrape());
            while (sample.find()) {
                names.add(sample.group(1));
            }
            return names;
        }
    }

    private static Set<String> metrics(String text) {
        Set<String> names = new TreeSet<>();
        Matcher metric = METRIC.matcher(text);
        while (metric.find()) {
            names.add(metric.group());
        }
        return names;
    }

    @Test
    void theDashboardShowsEveryMeterAndNoOther() throws IOException {
        Set<String> names = metrics(Files.readString(DOCS.resolve("grafana").resolve("verbena.json")));
        assertThat(names).hasSizeGreaterThan(20).isEqualTo(published());
    }

    @Test
    void theAlertsAreOnMetersThatThereAre() throws IOException {
        String page = Files.readString(DOCS.resolve("observability.md"));
        int begin = page.indexOf("### Grafana and alerts");
        String section = page.substring(begin, page.indexOf("\n### ", begin + 1));
        assertThat(metrics(section)).hasSizeGreaterThan(8);
        assertThat(published()).containsAll(metrics(section));
    }
}
