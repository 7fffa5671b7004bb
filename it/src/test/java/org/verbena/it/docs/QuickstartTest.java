package org.verbena.it.docs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * The quickstart of README.md, copied from the page: its class runs and prints what the page says, and its coordinates
 * are those of what is built. Maven itself does not run here: it would need a repository with Verbena in it.
 */
class QuickstartTest {
    private static final Pattern JAVA = Pattern.compile("`(\\S+\\.java)`:?\n+```java\n(.*?)```", Pattern.DOTALL);
    private static final Pattern XML = Pattern.compile("`pom\\.xml`:?\n+```xml\n(.*?)```", Pattern.DOTALL);
    private static final Pattern COMMAND =
            Pattern.compile("    mvn [^\n]*exec:exec\n+It prints:\n+    ([^\n]+)\n", Pattern.DOTALL);
    private static final Pattern COORDINATES =
            Pattern.compile("org\\.verbena:(verbena-[a-z-]+)(?::([0-9][^\"`\\s]*))?");

    @TempDir
    private Path folder;

    private final Path root = SnippetsTest.root();
    private final String page;
    private final Pom parent;
    private final Pom bom;
    private final Pom pom;

    QuickstartTest() throws IOException {
        page = Files.readString(root.resolve("README.md"));
        parent = Pom.of(root.resolve("pom.xml"));
        bom = Pom.of(root.resolve("bom/pom.xml"));
        pom = Pom.of(find(XML).group(1));
    }

    @Test
    @Timeout(240)
    void printsWhatThePageSays() throws Exception {
        MatchResult java = find(JAVA);
        Path source = folder.resolve(java.group(1));
        Files.createDirectories(source.getParent());
        Files.writeString(source, java.group(2));
        Path classes = folder.resolve("target/classes");
        SnippetsTest.compile(classes, source.getFileName().toString(), java.group(2));

        List<String> command = new ArrayList<>(
                List.of(Path.of(System.getProperty("java.home"), "bin/java").toString()));
        List<String> arguments =
                pom.all("build/plugins/plugin[artifactId='exec-maven-plugin']/configuration/arguments/*");
        // Shared memory is on this class path, and not on the page's.
        command.add("-Dorg.verbena.shm.auto=false");
        for (String argument : arguments) {
            command.add(argument.isEmpty() ? classes + ":" + System.getProperty("java.class.path") : argument);
        }
        Path output = folder.resolve("output");
        Path errors = folder.resolve("errors");
        Process process = new ProcessBuilder(command)
                .redirectOutput(output.toFile())
                .redirectError(errors.toFile())
                .start();
        try {
            assertThat(process.waitFor(200, TimeUnit.SECONDS)).isTrue();
        } finally {
            process.destroyForcibly();
        }
        assertThat(process.exitValue()).as(Files.readString(errors)).isZero();
        // The tests' logging prints to standard output, the quickstart's to standard error.
        assertThat(Files.readString(output).lines()).contains(find(COMMAND).group(1));
        assertThat(Files.readString(errors)).doesNotContain("WARNING");
    }

    @Test
    void takesVersionsFromTheBom() {
        String imported = "dependencyManagement/dependencies/dependency[scope='import']/";
        assertThat(pom.get(imported + "artifactId")).isEqualTo("verbena-bom");
        assertThat(pom.get(imported + "version")).isEqualTo(parent.get("version"));
        assertThat(pom.all("dependencies/dependency[groupId='org.verbena']/artifactId"))
                .contains("verbena-api")
                .isSubsetOf(published());
        assertThat(pom.all("dependencies/dependency[groupId='org.verbena']/version"))
                .isEmpty();
        assertThat(pom.get("dependencies/dependency[groupId='org.slf4j']/version"))
                .isEqualTo(parent.get("properties/slf4j.version"));
    }

    @Test
    void compilesAsVerbenaIs() {
        assertThat(pom.get("properties/maven.compiler.release")).isEqualTo(parent.get("properties/java.release"));
        for (String plugin : List.of("maven-compiler-plugin", "exec-maven-plugin")) {
            String version = "plugins/plugin[artifactId='" + plugin + "']/version";
            assertThat(pom.get("build/" + version))
                    .as(plugin)
                    .isEqualTo(parent.get("build/pluginManagement/" + version));
        }
    }

    @Test
    void allCoordinatesOfThePagesExist() throws IOException {
        for (String document : SnippetsTest.DOCUMENTS) {
            Matcher coordinates = COORDINATES.matcher(Files.readString(root.resolve(document)));
            while (coordinates.find()) {
                assertThat(published()).as(document).contains(coordinates.group(1));
                if (coordinates.group(2) != null) {
                    assertThat(coordinates.group(2)).as(document).isEqualTo(parent.get("version"));
                }
            }
        }
    }

    private List<String> published() {
        List<String> artifacts = new ArrayList<>(
                bom.all("dependencyManagement/dependencies/dependency[groupId='org.verbena']/artifactId"));
        artifacts.add("verbena-bom");
        return artifacts;
    }

    private MatchResult find(Pattern pattern) {
        Matcher matcher = pattern.matcher(page);
        assertThat(matcher.find()).as("README.md has " + pattern).isTrue();
        return matcher.toMatchResult();
    }
}
