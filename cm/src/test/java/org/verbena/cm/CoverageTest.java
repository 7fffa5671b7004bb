package org.verbena.cm;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.verbena.cm.ffm.RdmaCm;

/**
 * Keeps docs/coverage-librdmacm.md from rotting: its table has what library and headers have, and names Java methods
 * that are there.
 */
@Timeout(240)
class CoverageTest {
    private static final Path TABLE = Path.of("../docs/coverage-librdmacm.md");
    private static final Pattern ROW =
            Pattern.compile("^\\| `(\\w+)` \\| (.*?) \\| (.*?) \\| (.*?) \\|$", Pattern.MULTILINE);
    private static final Pattern INLINE =
            Pattern.compile("static inline [^;{}]*?\\b(rdma_\\w+)\\s*\\([^;{}]*\\)\\s*\\{", Pattern.DOTALL);

    @TempDir
    Path folder;

    /** The librdmacm section: C name to its other columns. */
    private static Map<String, List<String>> table() throws Exception {
        String text = Files.readString(TABLE);
        int begin = text.indexOf("\n## librdmacm");
        int end = text.indexOf("\n## ", begin + 1);
        Map<String, List<String>> rows = new LinkedHashMap<>();
        for (MatchResult row : ROW.matcher(text.substring(begin, end < 0 ? text.length() : end))
                .results()
                .toList()) {
            rows.put(row.group(1), List.of(row.group(2), row.group(3), row.group(4)));
        }
        return rows;
    }

    private Set<String> exported() throws Exception {
        Path library =
                List.of("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib").stream()
                        .map(directory -> Path.of(directory, "librdmacm.so.1"))
                        .filter(Files::exists)
                        .findFirst()
                        .orElse(null);
        Assumptions.assumeTrue(
                library != null && Files.isExecutable(Path.of("/usr/bin/nm")), "needs librdmacm.so.1 and nm");
        Path output = folder.resolve("symbols");
        Process nm = new ProcessBuilder("nm", "-D", "--defined-only", String.valueOf(library))
                .redirectErrorStream(true)
                .redirectOutput(output.toFile())
                .start();
        assertThat(nm.waitFor(60, TimeUnit.SECONDS)).isTrue();
        return Files.readAllLines(output).stream()
                .map(line -> line.split(" "))
                .filter(words -> words.length == 3 && words[1].equals("T"))
                .map(words -> words[2].replaceAll("@.*", ""))
                .collect(Collectors.toCollection(TreeSet::new));
    }

    @Test
    void tableHasWhatLibraryAndHeadersHave() throws Exception {
        Set<String> there = exported();
        for (String header : List.of("/usr/include/rdma/rdma_cma.h", "/usr/include/rdma/rdma_verbs.h")) {
            Assumptions.assumeTrue(Files.exists(Path.of(header)), "needs librdmacm-dev");
            INLINE.matcher(Files.readString(Path.of(header))).results().forEach(inline -> there.add(inline.group(1)));
        }
        assertThat(there).hasSizeGreaterThan(80);
        assertThat(new TreeSet<>(table().keySet())).isEqualTo(there);
    }

    @Test
    void everyFunctionOfTheLibraryIsBoundOrSaidNotToBe() throws Exception {
        Set<String> bound = Arrays.stream(RdmaCm.class.getDeclaredMethods())
                .map(Method::getName)
                .map(name -> "rdma_" + name.replaceAll("([A-Z])", "_$1").toLowerCase(java.util.Locale.ROOT))
                .collect(Collectors.toCollection(TreeSet::new));
        Map<String, List<String>> table = table();
        for (String function : exported()) {
            if (function.startsWith("rdma_")) {
                assertThat(table.get(function).getLast().contains("not bound: "))
                        .as(function + " has the note \"not bound: \" and its reason")
                        .isEqualTo(!bound.contains(function));
            }
        }
    }

    @Test
    void javaNamesExist() throws Exception {
        for (Map.Entry<String, List<String>> row : table().entrySet()) {
            String names = row.getValue().getFirst();
            if (names.equals("none")) {
                assertThat(row.getValue().getLast())
                        .as("why " + row.getKey() + " is not there")
                        .hasSizeGreaterThan(20);
                continue;
            }
            for (String name : names.replace("`", "").split(", ")) {
                int dot = name.indexOf('.');
                Class<?> owner = find(name.substring(0, dot));
                assertThat(Arrays.stream(owner.getMethods()).map(Method::getName))
                        .as(row.getKey() + " -> " + name)
                        .contains(name.substring(dot + 1));
            }
            assertThat(row.getValue().get(1))
                    .as("where %s was seen", row.getKey())
                    .isNotBlank();
            assertThat(row.getValue().getLast()).as(row.getKey()).doesNotContainIgnoringCase("later");
        }
    }

    private static Class<?> find(String simpleName) {
        return Stream.of("org.verbena.cm.", "org.verbena.cm.sync.", "org.verbena.verbs.")
                .flatMap(folder -> {
                    try {
                        return Stream.of(Class.forName(folder + simpleName));
                    } catch (ClassNotFoundException elsewhere) {
                        return Stream.empty();
                    }
                })
                .findFirst()
                .orElseThrow(() -> new AssertionError("there is no class " + simpleName));
    }
}
