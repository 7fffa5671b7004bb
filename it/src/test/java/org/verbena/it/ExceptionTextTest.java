package org.verbena.it;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/**
 * No code decides by the text of an exception, which is for people, in whatever language they have: classes and error
 * numbers decide.
 */
class ExceptionTextTest {
    private static final String QUESTION =
            "(contains|contentEquals|endsWith|equals|equalsIgnoreCase|indexOf|matches|startsWith)\\(";

    /** Of the call itself, with conversions in between, as of {@code String.valueOf(e.getMessage()).strip()}. */
    private static final Pattern DIRECT =
            Pattern.compile("get(Localized)?Message\\(\\)\\)*(\\s*\\.\\w+\\([^()]*\\))*?\\s*\\." + QUESTION);

    /** Of a constant, or of a pattern. */
    private static final Pattern REVERSED = Pattern.compile(
            "\\.(" + "equals|equalsIgnoreCase|contentEquals|matcher" + ")\\([^()]*get(Localized)?Message\\(\\)");

    /** Of a variable that has the text. */
    private static final Pattern KEPT =
            Pattern.compile("String (\\w+) =\\s*[^;+]{0,80}get(Localized)?Message\\(\\)\\)*;([^}]{0,1000})");

    @Test
    void seesEveryWayToAsk() {
        assertThat(decisions("if (e.getMessage().contains(\"refused\"))")).hasSize(1);
        assertThat(decisions("String.valueOf(e.getMessage()).contains(\"refused\")"))
                .hasSize(1);
        assertThat(decisions("e.getMessage().toLowerCase(Locale.ROOT)\n    .startsWith(\"x\")"))
                .hasSize(1);
        assertThat(decisions("\"refused\".equals(e.getMessage())")).hasSize(1);
        assertThat(decisions("REFUSED.matcher(e.getMessage()).find()")).hasSize(1);
        assertThat(decisions("String text = String.valueOf(e.getMessage());\n return text.contains(\"refused\");"))
                .hasSize(1);
        assertThat(decisions("throw new X(e.getMessage() + (a.equals(b) ? \"\" : b.getMessage()))"))
                .isEmpty();
    }

    @Test
    void noMainCodeAsks() throws IOException {
        Path root = Path.of("..").toRealPath();
        List<String> found = new ArrayList<>();
        int[] files = {0};
        try (Stream<Path> all = Files.walk(root)) {
            for (Path file : all.filter(path -> path.toString().contains("/src/main/java/")
                            && path.toString().endsWith(".java"))
                    .toList()) {
                files[0]++;
                for (String decision : decisions(Files.readString(file))) {
                    found.add(root.relativize(file) + ": " + decision.replaceAll("\\s+", " "));
                }
            }
        }
        assertThat(files[0]).as("source files").isGreaterThan(500);
        assertThat(found).isEmpty();
    }

    private static List<String> decisions(String source) {
        List<String> found = new ArrayList<>();
        DIRECT.matcher(source).results().forEach(match -> found.add(match.group()));
        REVERSED.matcher(source).results().forEach(match -> found.add(match.group()));
        Matcher kept = KEPT.matcher(source);
        while (kept.find()) {
            Matcher asked =
                    Pattern.compile("\\b" + kept.group(1) + "\\." + QUESTION).matcher(kept.group(3));
            if (asked.find()) {
                found.add(kept.group(1) + "." + asked.group(1) + " of an exception's text");
            }
        }
        return found;
    }
}
