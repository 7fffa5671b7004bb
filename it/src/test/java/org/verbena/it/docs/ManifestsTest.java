package org.verbena.it.docs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.yaml.snakeyaml.Yaml;

/** The manifests of {@code docs/kubernetes.md} are YAML, and their figures fit together. */
class ManifestsTest {
    private static final Pattern BLOCK = Pattern.compile("```yaml\n(.*?)```", Pattern.DOTALL);
    private static final Pattern SIGTERM = Pattern.compile("closeOnSigterm\\(Duration\\.ofSeconds\\((\\d+)\\)\\)");
    private static final Pattern POOL = Pattern.compile("-Dorg\\.verbena\\.buffers\\.maxRegisteredBytes=(\\d+)");
    private static final Pattern HEAP = Pattern.compile("-XX:MaxRAMPercentage=(\\d+)");

    private final String page;
    private final List<Map<String, Object>> manifests = new ArrayList<>();

    ManifestsTest() throws IOException {
        page = Files.readString(SnippetsTest.root().resolve("docs/kubernetes.md"));
        for (MatchResult block : BLOCK.matcher(page).results().toList()) {
            for (Object manifest : new Yaml().loadAll(block.group(1))) {
                manifests.add(map(manifest));
            }
        }
    }

    @Test
    void selectsThePodsThatItMakes() {
        Map<String, Object> deployment = ofKind("Deployment");
        Object labels = at(deployment, "spec", "template", "metadata", "labels");
        assertThat(labels).isNotNull();
        assertThat(at(deployment, "spec", "selector", "matchLabels")).isEqualTo(labels);
        assertThat(at(ofKind("Service"), "spec", "selector")).isEqualTo(labels);
    }

    @Test
    void namesOnePort() {
        Object port = at(container(), "ports", 0, "containerPort");
        assertThat(port).isEqualTo(7471);
        assertThat(at(container(), "readinessProbe", "tcpSocket", "port")).isEqualTo(port);
        assertThat(at(ofKind("Service"), "spec", "ports", 0, "port")).isEqualTo(port);
    }

    @Test
    void waitsForTheEndOfAShutdown() {
        long gracePeriod = (int) at(ofKind("Deployment"), "spec", "template", "spec", "terminationGracePeriodSeconds");
        int closingSeconds = 5; // RdmaServer#closeOnSigterm has them in addition
        assertThat(gracePeriod).isGreaterThan(number(SIGTERM, page) + closingSeconds);
    }

    @Test
    void hasMemoryForHeapAndPools() {
        String options = (String) at(container(), "env", 0, "value");
        assertThat(at(container(), "resources", "limits", "memory")).isEqualTo("2Gi");
        long limitBytes = 2L << 30;
        long pools = 2L * number(POOL, options);
        long heap = limitBytes * number(HEAP, options) / 100;
        assertThat(pools + heap).isLessThan(limitBytes * 3 / 4);
    }

    @Test
    void letsContainersShareOneDirectory() {
        Map<String, Object> pod = manifests.stream()
                .map(manifest -> at(manifest, "spec"))
                .map(ManifestsTest::map)
                .filter(spec -> Boolean.TRUE.equals(spec.get("shareProcessNamespace")))
                .findFirst()
                .orElseThrow();
        assertThat(at(pod, "securityContext", "runAsUser")).isNotNull();
        for (String of : List.of("env", "volumeMounts")) {
            assertThat(at(pod, "containers", 0, of)).isNotNull().isEqualTo(at(pod, "containers", 1, of));
        }
    }

    private Map<String, Object> container() {
        return map(at(ofKind("Deployment"), "spec", "template", "spec", "containers", 0));
    }

    private Map<String, Object> ofKind(String kind) {
        return manifests.stream()
                .filter(manifest -> kind.equals(manifest.get("kind")))
                .findFirst()
                .orElseThrow();
    }

    private static long number(Pattern pattern, String text) {
        Matcher matcher = pattern.matcher(text);
        assertThat(matcher.find()).as(pattern.pattern()).isTrue();
        return Long.parseLong(matcher.group(1));
    }

    /** What is at a path of keys and indices. */
    private static Object at(Object value, Object... path) {
        Object here = value;
        for (Object step : path) {
            here = Objects.requireNonNull(
                    step instanceof Integer index
                            ? ((List<?>) here).get(index)
                            : map(here).get(step),
                    step::toString);
        }
        return here;
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> map(Object value) {
        return (Map<String, Object>) value;
    }
}
