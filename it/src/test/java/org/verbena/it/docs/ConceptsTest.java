package org.verbena.it.docs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** docs/concepts.md names classes, members and tests that are there, and has a test in every row. */
@Timeout(120)
class ConceptsTest {
    private static final Pattern ROW = Pattern.compile("\\| ([^|]+) \\| ([^|]+) \\| ([^|]+) \\|");
    private static final Pattern NAME = Pattern.compile("`([A-Z][a-z]\\w*)(?:\\.(\\w+))?`");

    /** Where a test may have been. */
    private static final Pattern PLACE = Pattern.compile("\\b(rxe|siw|stub|simulated|any)\\b");

    private static List<MatchResult> rows;
    /** Each source by its class; several where modules have classes of one name. */
    private static Map<String, List<Path>> sources;

    @BeforeAll
    static void read() throws IOException {
        rows = Files.readAllLines(Path.of("../docs/concepts.md")).stream()
                .flatMap(line -> ROW.matcher(line).results())
                .filter(row -> !row.group(1).equals("what"))
                .toList();
        try (Stream<Path> files = Files.walk(Path.of(".."))) {
            sources = files.filter(file -> file.toString().endsWith(".java")
                            && (file.toString().contains("/src/main/")
                                    || file.toString().contains("/src/test/")))
                    .collect(Collectors.groupingBy(
                            file -> file.getFileName().toString().replace(".java", "")));
        }
    }

    private static List<String> missing(String cell, String place, String declaration) throws IOException {
        List<String> missing = new ArrayList<>();
        for (MatchResult name : NAME.matcher(cell).results().toList()) {
            boolean found = false;
            for (Path source : sources.getOrDefault(name.group(1), List.of())) {
                String member = name.group(2);
                found |= source.toString().contains(place)
                        && (member == null
                                || Pattern.compile(declaration.formatted(member))
                                        .matcher(Files.readString(source))
                                        .find());
            }
            if (!found) {
                missing.add(name.group());
            }
        }
        return missing;
    }

    @Test
    void namesWhatIsThere() throws IOException {
        assertThat(rows).hasSizeGreaterThan(70);
        List<String> missing = new ArrayList<>();
        for (MatchResult row : rows) {
            missing.addAll(missing(row.group(2), "/src/main/", "\\b%s\\b"));
            missing.addAll(missing(row.group(3), "/src/test/", "void %s\\("));
        }
        assertThat(missing).as("named by docs/concepts.md and not there").isEmpty();
    }

    @Test
    void everyRowHasATestAndSaysOnWhat() {
        List<String> without = rows.stream()
                .filter(row -> !(NAME.matcher(row.group(2)).find()
                        && NAME.matcher(row.group(3)).find()
                        && PLACE.matcher(row.group(3)).find()))
                .map(MatchResult::group)
                .toList();
        assertThat(without).as("rows without a class, a test, or where it ran").isEmpty();
    }
}
