package org.verbena.it.docs;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.verbena.testing.InProcessProvider;
import org.verbena.transport.provider.ProviderChoice;
import org.verbena.transport.spi.RdmaProvider;

/** The recipes of docs/recipes.md run as they stand there, and print what the page says. */
@Timeout(120)
class RecipesTest {
    private static final Pattern RECIPE = Pattern.compile(
            "\n## ([^\n]+)\n(?:(?!\n## ).)*?```java\n(.*?)```\n+[^\n]*prints:\n\n((?:    [^\n]+\n)+)", Pattern.DOTALL);

    /** Without imports and empty lines. A recipe is read in a minute. */
    private static final int MAX_LINES = 30;

    @TempDir
    private Path out;

    record Recipe(String title, String code, List<String> prints) {
        @Override
        public String toString() {
            return title;
        }
    }

    static Stream<Recipe> recipes() throws IOException {
        return RECIPE.matcher(page())
                .results()
                .map(recipe -> new Recipe(
                        recipe.group(1),
                        recipe.group(2),
                        recipe.group(3).lines().map(String::strip).toList()));
    }

    private static String page() throws IOException {
        return Files.readString(SnippetsTest.root().resolve("docs/recipes.md"));
    }

    @Test
    void everyHeadingIsARecipeThatRuns() throws IOException {
        List<String> headings =
                page().lines().filter(line -> line.startsWith("## ")).toList();
        assertThat(recipes().map(recipe -> "## " + recipe.title())).containsExactlyElementsOf(headings);
        assertThat(headings).hasSizeGreaterThanOrEqualTo(10);
    }

    @ParameterizedTest
    @MethodSource("recipes")
    void isShort(Recipe recipe) {
        assertThat(recipe.code().lines().filter(line -> !line.isBlank() && !line.startsWith("import ")))
                .hasSizeLessThanOrEqualTo(MAX_LINES);
    }

    @ParameterizedTest
    @MethodSource("recipes")
    void printsWhatThePageSays(Recipe recipe) throws Exception {
        assertThat(run(recipe)).containsSubsequence(recipe.prints());
    }

    /** Those that name no provider. gRPC's loops are the JVM's, and keep the provider that they were made with. */
    static Stream<Recipe> recipesForAnyProvider() throws IOException {
        return recipes()
                .filter(recipe ->
                        !recipe.title().equals("gRPC") && !recipe.code().contains(".provider("));
    }

    @ParameterizedTest
    @MethodSource("recipesForAnyProvider")
    void printsTheSameWithoutANetwork(Recipe recipe) throws Exception {
        RdmaProvider inProcess = ProviderChoice.find(InProcessProvider.NAME);
        long before = inProcess.counters().completions();
        String configured = System.getProperty(ProviderChoice.PROPERTY);
        System.setProperty(ProviderChoice.PROPERTY, InProcessProvider.NAME);
        try {
            assertThat(run(recipe)).containsSubsequence(recipe.prints());
        } finally {
            if (configured == null) {
                System.clearProperty(ProviderChoice.PROPERTY);
            } else {
                System.setProperty(ProviderChoice.PROPERTY, configured);
            }
        }
        assertThat(inProcess.counters().completions()).isGreaterThan(before);
    }

    private List<String> run(Recipe recipe) throws Exception {
        String code = withFreePorts(recipe.code());
        SnippetsTest.compile(out, "Snippet.java", new SnippetsTest.Snippet("recipe", recipe.title(), code).source());
        return printedBy(out, loader -> {
            Method run = loader.loadClass("recipe.Snippet").getDeclaredMethod("run");
            run.setAccessible(true);
            run.invoke(null);
        });
    }

    static String withFreePorts(String code) throws Exception {
        String changed = code;
        for (String port : List.of("7471", "7472", "7473")) {
            changed = changed.replaceAll("\\b" + port + "\\b", FrameworksTest.freePort());
        }
        return changed;
    }

    /** Runs something with classes of a folder. */
    interface Run {
        void with(ClassLoader loader) throws Exception;
    }

    /** Returns what it prints; logging that begins meanwhile prints there, too. */
    static List<String> printedBy(Path classes, Run run) throws Exception {
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        PrintStream before = System.out;
        try (URLClassLoader loader =
                new URLClassLoader(new URL[] {classes.toUri().toURL()}, RecipesTest.class.getClassLoader())) {
            System.setOut(new PrintStream(printed, true, UTF_8));
            run.with(loader);
        } finally {
            System.setOut(before);
        }
        return printed.toString(UTF_8).lines().toList();
    }
}
