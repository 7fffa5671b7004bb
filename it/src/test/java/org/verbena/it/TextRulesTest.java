package org.verbena.it;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** How wide and how long files are, as far as the formatter does not see to it. */
class TextRulesTest {
    private static final int JAVA_COLUMNS = 120;
    private static final int MARKDOWN_COLUMNS = 100;

    /** Code of pages that the site shows without scrolling on a screen of 1,280 pixels, beside both of its lists. */
    private static final int CODE_COLUMNS = 101;

    private static final int MAX_README_LINES = 150;

    /** A user reads a sample in a minute, and copies it. */
    private static final int MAX_SAMPLE_LINES = 150;

    /** Indentation, and what begins an item of a list. */
    private static final Pattern MARKER = Pattern.compile(" *(?:[-*] |\\d+\\. )?");

    /** What the formatter does not read on JDK 17; at the beginning of a line, which no comment is. */
    private static final Pattern NOT_IN_JAVA_17 =
            Pattern.compile("^ *case null\\b|(^ *|\\()[\\w<][\\w.<>\\[\\], ?]* _ [=:]|\\(_\\) ->|^ *catch .* _\\)");

    private static final Pattern AVOIDED = Pattern.compile("## Words that are avoided.*", Pattern.DOTALL);
    private static final Pattern FIRST_COLUMN = Pattern.compile("^\\| (`[^|]*`) \\|", Pattern.MULTILINE);
    private static final Pattern QUOTED = Pattern.compile("`([^`]+)`");

    /** A comment, or a string: what people read of a line of code. */
    private static final Pattern PROSE = Pattern.compile("//.*|^\\s*/?\\*.*|\"(?:[^\"\\\\]|\\\\.)*\"");

    /** A comment that stands for a noun which only the code below it has. */
    private static final Pattern NO_SUBJECT = Pattern.compile("^ *(?:/\\*\\*|//) (?:Of|Those) ");

    /** A bound is a max or a min. */
    private static final Pattern MOST_OR_LEAST =
            Pattern.compile("\\b(?:MOST|LEAST|(?:MOST|LEAST)_\\w+|(?:most|least)[A-Z]\\w*)\\b");

    /** Bounds of the public API, which keep their names, and what fills them. */
    private static final Set<String> PUBLIC_BOUNDS = Set.of(
            "LEAST_BYTES",
            "MOST_BYTES",
            "leastBytesPerSecond",
            "leastNanos",
            "mostBatchMessages",
            "mostNanos",
            "mostPerAddress",
            "mostRecordBytes",
            "MOST_BACKOFF_NANOS",
            "MOST_CONNECTIONS");

    /** Packages that still have such names, and such comments. The list may shrink. */
    private static final List<String> UNTIDY = List.of(
            "adapters/jgroups/",
            "api/src/main/java/org/verbena/api/internal/client/",
            "transport/core/src/main/java/org/verbena/transport/protocol/",
            "transport/shm/",
            "transport/soft/src/main/java/org/verbena/transport/soft/uring/",
            "verbs/");

    /** What lets time pass: a test waits for an event or a condition instead, with {@code Patience}. */
    private static final Pattern SLEEP =
            Pattern.compile("\\b(Thread\\.sleep|parkNanos|Patience\\.sleep|[A-Z]+SECONDS\\.sleep|parkUntil)\\(");

    /** Test code that may, by what for. */
    private static final Set<String> SLEEPERS = Set.of(
            "Patience",
            // A load that lasts for its time.
            "NetworkCutSuite",
            "RequestLoad",
            // Nothing happens meanwhile: a loop that sleeps, or that a handler keeps, an idle connection.
            "ClockJumps",
            "GrpcSuite",
            "ProviderContract",
            "VirtualThreadsTest",
            // What another process or the system has, which tells nobody, at intervals.
            "ChannelRpingTest",
            "Descriptors",
            "GuestMain",
            "LabTestEngine",
            "NativeHeap");

    @Test
    void commentsKeepToTheirColumns() throws IOException {
        List<String> wide = new ArrayList<>();
        List<Path> files = SourceTree.files(".java");
        for (Path file : files) {
            int number = 0;
            for (String line : Files.readAllLines(file)) {
                number++;
                if (isWideComment(line)) {
                    wide.add(SourceTree.root().relativize(file) + ":" + number + ": " + line.strip());
                }
            }
        }
        assertThat(files).hasSizeGreaterThan(1000);
        assertThat(wide).as("comments of more than %d columns", JAVA_COLUMNS).isEmpty();
    }

    private static boolean isWideComment(String line) {
        String text = line.stripLeading();
        return line.length() > JAVA_COLUMNS && (text.startsWith("*") || text.startsWith("/"));
    }

    /** {@code mvn verify} on Debian 12's Maven runs the formatter on JDK 17. */
    @Test
    void theFormatterReadsAllOnJdk17() throws IOException {
        List<String> unread = new ArrayList<>();
        for (Path file : SourceTree.files(".java")) {
            if (Files.readAllLines(file).stream()
                    .anyMatch(line -> NOT_IN_JAVA_17.matcher(line).find())) {
                unread.add(SourceTree.root().relativize(file).toString());
            }
        }
        assertThat(unread)
                .as("files with 'case null', or a variable without a name")
                .isEmpty();
    }

    @Test
    void pagesKeepToTheirColumns() throws IOException {
        List<String> wide = new ArrayList<>();
        List<Path> pages = SourceTree.files(".md");
        for (Path page : pages) {
            for (String line : wideLines(Files.readString(page))) {
                wide.add(SourceTree.root().relativize(page) + ": " + line);
            }
        }
        assertThat(pages).hasSizeGreaterThan(20);
        assertThat(wide).as("lines of more than %d columns", MARKDOWN_COLUMNS).isEmpty();
    }

    @Test
    void seesWideText() {
        String wide = "word ".repeat(21);
        assertThat(wideLines("a\n" + wide + "\n- " + wide)).hasSize(2);
        assertThat(wideLines("| " + wide + "|\n  | " + wide + "|\n    " + wide + "\n```\n" + wide + "\n```\n"))
                .isEmpty();
        String link = "[b](https://" + "x".repeat(100) + ")";
        assertThat(wideLines(link + "\n- " + link + ",")).isEmpty();
        assertThat(wideLines("see " + link)).hasSize(1);
        assertThat(isWideComment("     * " + "word ".repeat(23))).isTrue();
        assertThat(isWideComment("        // " + "word ".repeat(23))).isTrue();
        assertThat(isWideComment("        call(\"" + "word ".repeat(23) + "\");"))
                .isFalse();
    }

    /** Without tables, code, and lines that no blank can break earlier. */
    private static List<String> wideLines(String page) {
        List<String> wide = new ArrayList<>();
        boolean isCode = false;
        for (String line : page.lines().toList()) {
            if (line.startsWith("```")) {
                isCode = !isCode;
            } else if (line.length() > MARKDOWN_COLUMNS
                    && !isCode
                    && !line.stripLeading().startsWith("|")
                    && !line.startsWith("    ")
                    && canBreak(line)) {
                wide.add(line);
            }
        }
        return wide;
    }

    /** Whether there is a blank where it can, behind what marks a list. */
    private static boolean canBreak(String line) {
        Matcher marker = MARKER.matcher(line);
        return marker.lookingAt() && line.lastIndexOf(' ', MARKDOWN_COLUMNS) >= marker.end();
    }

    /** The glossary has the list. A changelog keeps what it said. */
    @Test
    void textsAvoidTheWordsThatTheGlossaryNames() throws IOException {
        Pattern avoided = avoidedWords();
        List<String> found = new ArrayList<>();
        for (Path file : SourceTree.files(".java")) {
            if (file.toString().contains("/src/main/")) {
                for (String line : Files.readAllLines(file)) {
                    Matcher prose = PROSE.matcher(line);
                    while (prose.find()) {
                        if (avoided.matcher(prose.group()).find()) {
                            found.add(SourceTree.root().relativize(file) + ": " + line.strip());
                        }
                    }
                }
            }
        }
        for (Path page : SourceTree.files(".md")) {
            if (!page.endsWith("glossary.md") && !page.endsWith("CHANGELOG.md")) {
                Files.readAllLines(page).stream()
                        .filter(line -> avoided.matcher(line).find())
                        .forEach(line -> found.add(SourceTree.root().relativize(page) + ": " + line));
            }
        }
        assertThat(found).as("lines with words that docs/glossary.md avoids").isEmpty();
    }

    private static Pattern avoidedWords() throws IOException {
        Matcher section = AVOIDED.matcher(Files.readString(SourceTree.root().resolve("docs/glossary.md")));
        assertThat(section.find()).isTrue();
        List<String> words = FIRST_COLUMN
                .matcher(section.group())
                .results()
                .flatMap(cell -> QUOTED.matcher(cell.group(1)).results())
                .map(word -> Pattern.quote(word.group(1)))
                .toList();
        assertThat(words).hasSizeGreaterThan(8);
        return Pattern.compile("\\b(?:" + String.join("|", words) + ")\\b", Pattern.CASE_INSENSITIVE);
    }

    @Test
    void seesWordsToAvoid() throws IOException {
        assertThat(avoidedWords().matcher("// Whoever is told of it").find()).isTrue();
        assertThat(avoidedWords().matcher("standalone, is tolder").find()).isFalse();
        assertThat(PROSE.matcher("int alone = anew;").find()).isFalse();
        assertThat(PROSE.matcher("call(\"in vain\");").find()).isTrue();
    }

    @Test
    void commentsHaveSubjects() throws IOException {
        List<String> without = new ArrayList<>();
        for (Path file : SourceTree.files(".java")) {
            String name = SourceTree.root().relativize(file).toString();
            if (name.contains("/src/main/") && UNTIDY.stream().noneMatch(name::startsWith)) {
                Files.readAllLines(file).stream()
                        .filter(line -> NO_SUBJECT.matcher(line).find())
                        .forEach(line -> without.add(name + ": " + line.strip()));
            }
        }
        assertThat(without)
                .as("comments that begin with 'Of' or 'Those': name what it is")
                .isEmpty();
    }

    @Test
    void namesSayMaxAndMin() throws IOException {
        Set<String> names = new TreeSet<>();
        for (Path file : SourceTree.files(".java")) {
            String name = SourceTree.root().relativize(file).toString();
            if (name.contains("/src/main/") && UNTIDY.stream().noneMatch(name::startsWith)) {
                MOST_OR_LEAST
                        .matcher(Files.readString(file))
                        .results()
                        .filter(bound -> !PUBLIC_BOUNDS.contains(bound.group()))
                        .forEach(bound -> names.add(bound.group() + " in " + name));
            }
        }
        assertThat(names).as("names that say most or least: max or min").isEmpty();
    }

    @Test
    void javaOfPagesFitsTheSite() throws IOException {
        List<String> wide = new ArrayList<>();
        for (Path page : SourceTree.files(".md")) {
            boolean isJava = false;
            for (String line : Files.readAllLines(page)) {
                isJava = line.startsWith("```") ? line.equals("```java") : isJava;
                if (isJava && line.length() > CODE_COLUMNS) {
                    wide.add(SourceTree.root().relativize(page) + ": " + line);
                }
            }
        }
        assertThat(wide)
                .as("Java of more than %d columns in pages", CODE_COLUMNS)
                .isEmpty();
    }

    @Test
    void theFrontPageIsShort() throws IOException {
        assertThat(Files.readAllLines(SourceTree.root().resolve("README.md")))
                .hasSizeLessThanOrEqualTo(MAX_README_LINES);
    }

    /** A wait for a duration is too short on a busy machine, and too long on every other. */
    @Test
    void testsDoNotSleep() throws IOException {
        Set<String> sleeping = new TreeSet<>();
        for (Path file : SourceTree.files(".java")) {
            if (file.toString().contains("/src/test/")
                    && SLEEP.matcher(Files.readString(file)).find()) {
                sleeping.add(file.getFileName().toString().replace(".java", ""));
            }
        }
        sleeping.remove("TextRulesTest");
        assertThat(sleeping)
                .as("tests that sleep: wait with Patience for what shall happen, or name them in SLEEPERS")
                .isEqualTo(new TreeSet<>(SLEEPERS));
    }

    @Test
    void samplesAreShort() throws IOException {
        List<String> longer = new ArrayList<>();
        Path samples = SourceTree.root().resolve("samples/src/main");
        List<Path> files = SourceTree.files(".java").stream()
                .filter(file -> file.startsWith(samples))
                .toList();
        for (Path file : files) {
            int lines = Files.readAllLines(file).size();
            if (lines > MAX_SAMPLE_LINES) {
                longer.add(samples.relativize(file) + ": " + lines);
            }
        }
        assertThat(files).hasSizeGreaterThan(30);
        assertThat(longer).as("samples of more than %d lines", MAX_SAMPLE_LINES).isEmpty();
    }
}
