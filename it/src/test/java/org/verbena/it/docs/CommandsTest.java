package org.verbena.it.docs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.verbena.it.SourceTree;
import org.verbena.tools.Main;
import picocli.CommandLine;
import picocli.CommandLine.ParameterException;

/** The commands that the pages show are accepted as they stand, and the scripts and tests that they start exist. */
class CommandsTest {
    private static final Path ROOT = SourceTree.root();
    private static final Pattern VERBENA = Pattern.compile("\\./verbena ([^`#|>&\n]+)");
    private static final Pattern MAVEN_TEST = Pattern.compile("mvn test -pl (\\S+) [^`\n]*-Dtest='?(\\w+)");
    private static final Pattern SCRIPT = Pattern.compile(
            "(?:`|^    |[A-Z]=\\S+ )((?:bench|it/lab|stress|\\.ci)/[\\w-]+)(?=[ `\n])", Pattern.MULTILINE);
    private static final Pattern TABLE_ROW = Pattern.compile("^\\| (`[^|]*?(?:\\\\\\|[^|]*?)*) \\|", Pattern.MULTILINE);

    @Test
    void areAccepted() throws IOException {
        List<String> refused = new ArrayList<>();
        int commands = 0;
        for (Path page : pages()) {
            for (MatchResult shown :
                    VERBENA.matcher(Files.readString(page)).results().toList()) {
                String command = shown.group(1).strip();
                if (!command.startsWith("COMMAND")) {
                    commands++;
                    parse(command).ifPresent(why -> refused.add(ROOT.relativize(page) + ": " + command + ": " + why));
                }
            }
        }
        assertThat(commands).isGreaterThan(30);
        assertThat(refused).isEmpty();
    }

    /** Each in the first column of the table in docs/README.md. */
    @Test
    void ofTheTableExist() throws IOException {
        String page = Files.readString(ROOT.resolve("docs/README.md"));
        String table = page.substring(page.indexOf("## Command line"), page.indexOf("## Artifacts"));
        List<String> unknown = new ArrayList<>();
        int commands = 0;
        for (MatchResult row : TABLE_ROW.matcher(table).results().toList()) {
            for (MatchResult name : Pattern.compile("`([a-z][a-z-]*(?: (?:server|client))?)")
                    .matcher(row.group(1))
                    .results()
                    .toList()) {
                commands++;
                if (!exists(name.group(1).split(" "))) {
                    unknown.add(name.group(1));
                }
            }
        }
        assertThat(commands).isGreaterThan(20);
        assertThat(unknown).isEmpty();
    }

    @Test
    void mavenFindsTheTestsThatItIsToRun() throws IOException {
        List<String> missing = new ArrayList<>();
        int tests = 0;
        for (Path page : pages()) {
            for (MatchResult shown :
                    MAVEN_TEST.matcher(Files.readString(page)).results().toList()) {
                tests++;
                Path module = ROOT.resolve(shown.group(1)).resolve("src/test/java");
                if (!Files.isDirectory(module) || !has(module, shown.group(2))) {
                    missing.add(ROOT.relativize(page) + ": " + shown.group());
                }
            }
        }
        assertThat(tests).isGreaterThan(3);
        assertThat(missing).isEmpty();
    }

    @Test
    void scriptsExist() throws IOException {
        List<String> missing = new ArrayList<>();
        int scripts = 0;
        for (Path page : pages()) {
            for (MatchResult shown :
                    SCRIPT.matcher(Files.readString(page)).results().toList()) {
                scripts++;
                if (!Files.exists(ROOT.resolve(shown.group(1)))) {
                    missing.add(ROOT.relativize(page) + ": " + shown.group(1));
                }
            }
        }
        assertThat(scripts).isGreaterThan(30);
        assertThat(missing).isEmpty();
    }

    private static List<Path> pages() throws IOException {
        return SourceTree.files(".md").stream()
                .filter(page -> !page.endsWith("CHANGELOG.md"))
                .toList();
    }

    private static boolean has(Path sources, String test) throws IOException {
        try (Stream<Path> all = Files.walk(sources)) {
            return all.anyMatch(file -> file.endsWith(test + ".java"));
        }
    }

    private static boolean exists(String... path) {
        CommandLine command = Main.commandLine(path);
        for (String name : path) {
            command = command.getSubcommands().get(name);
            if (command == null) {
                return false;
            }
        }
        return true;
    }

    /** What is wrong with the arguments, with a number for PID and without the brackets around what may be left out. */
    private static Optional<String> parse(String command) {
        String[] words = Arrays.stream(command.split("\\s+"))
                .map(word -> word.equals("PID") ? "1" : word.replaceAll("[\\[\\]]", ""))
                .toArray(String[]::new);
        try {
            Main.commandLine(words).parseArgs(words);
            return Optional.empty();
        } catch (ParameterException refused) {
            return Optional.of(String.valueOf(refused.getMessage()));
        }
    }
}
