package org.verbena.it.docs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** The classes, methods and tests that architecture.md names for a newcomer's questions, and for refusals, exist. */
class WhereDecidedTest {
    private static final Path ROOT = SnippetsTest.root();
    private static final String QUESTIONS = "## Where is it decided\\?\n";
    private static final String REFUSALS = "What a device, the JVM or the kernel may refuse for a moment:\n";
    private static final Pattern ROW = Pattern.compile("^\\| (.+?) \\| (.+?) \\| (.+?) \\|$", Pattern.MULTILINE);
    private static final Pattern NAME = Pattern.compile("`([A-Z]\\w+)(?:#(\\w+))?`");

    @Test
    void namesWhatExists() throws IOException {
        Map<String, List<String>> sources = sources();
        List<MatchResult> rows = rows(QUESTIONS);
        rows.addAll(rows(REFUSALS));
        List<String> missing = new ArrayList<>();
        for (MatchResult row : rows) {
            for (MatchResult name : NAME.matcher(row.group()).results().toList()) {
                String method = name.group(2);
                if (sources.getOrDefault(name.group(1), List.of()).stream()
                        .noneMatch(source -> method == null || source.contains(" " + method + "("))) {
                    missing.add(row.group(1) + ": " + name.group());
                }
            }
        }
        assertThat(missing).isEmpty();
        assertThat(rows).as("questions and refusals").hasSizeGreaterThan(14 + 12);
    }

    /** Each question has a test, and that is one. */
    @Test
    void namesATestForEachAnswer() throws IOException {
        for (MatchResult row : rows(QUESTIONS)) {
            assertThat(NAME.matcher(row.group(3)).results().map(name -> name.group(1)))
                    .as(row.group(1))
                    .isNotEmpty()
                    .allMatch(name -> name.matches("\\w+(Test|Suite|Contract)"));
        }
    }

    /** README leads there in one step. */
    @Test
    void readmeLeadsThere() throws IOException {
        assertThat(Files.readString(ROOT.resolve("README.md"))).contains("docs/architecture.md#where-is-it-decided");
    }

    private static List<MatchResult> rows(String beginning) throws IOException {
        Matcher section = Pattern.compile("^" + beginning + "(.*?)^## ", Pattern.MULTILINE | Pattern.DOTALL)
                .matcher(Files.readString(ROOT.resolve("docs/architecture.md")));
        assertThat(section.find()).isTrue();
        // The first is the table's head.
        return ROW.matcher(section.group(1)).results().skip(1).collect(Collectors.toCollection(ArrayList::new));
    }

    /** What is in the source files, by their simple names, which several may share. */
    private static Map<String, List<String>> sources() throws IOException {
        Map<String, List<String>> sources = new HashMap<>();
        try (Stream<Path> all = Files.walk(ROOT)) {
            for (Path file : all.filter(path -> path.toString().matches(".*/src/(main|test)/java/.*\\.java"))
                    .toList()) {
                String name = file.getFileName().toString();
                sources.computeIfAbsent(name.substring(0, name.length() - ".java".length()), first -> new ArrayList<>())
                        .add(Files.readString(file));
            }
        }
        return sources;
    }
}
