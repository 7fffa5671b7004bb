package org.verbena.it.docs;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The program of docs/tutorial.md compiles after each step and prints what the page says, and its tests pass. */
@Timeout(240)
class TutorialTest {
    private static final Pattern STEP = Pattern.compile("\n## (\\d)\\. [^\n]+\n(.*?)(?=\n## )", Pattern.DOTALL);
    private static final Pattern CODE = Pattern.compile("```java\n(.*?)```", Pattern.DOTALL);
    private static final Pattern TYPE = Pattern.compile("^public (?:class|record) (\\w+)", Pattern.MULTILINE);
    private static final Pattern PRINTS = Pattern.compile("\nIt prints:\n\n((?:    [^\n]+\n)+)");

    @TempDir
    private Path out;

    /** The program as a reader of the page has it by now: files by the names of their types. */
    private final Map<String, String> program = new TreeMap<>();

    @Test
    void eachStepRuns() throws Exception {
        String page = Files.readString(SnippetsTest.root().resolve("docs/tutorial.md"));
        List<MatchResult> steps = STEP.matcher(page).results().toList();
        assertThat(steps).extracting(step -> step.group(1)).containsExactly("1", "2", "3", "4", "5", "6");
        for (MatchResult step : steps) {
            for (MatchResult code : CODE.matcher(step.group(2)).results().toList()) {
                add(code.group(1));
            }
            Path classes = out.resolve(step.group(1));
            compile(classes);
            Matcher prints = PRINTS.matcher(step.group(2));
            if (prints.find()) {
                assertThat(RecipesTest.printedBy(
                                classes,
                                loader -> loader.loadClass("Main")
                                        .getMethod("main", String[].class)
                                        .invoke(null, (Object) new String[0])))
                        .as("step %s", step.group(1))
                        .containsSubsequence(
                                prints.group(1).lines().map(String::strip).toList());
            } else {
                assertThat(step).isSameAs(steps.getLast());
                RecipesTest.printedBy(classes, TutorialTest::runTests);
            }
        }
    }

    /** A whole file, or a method in place of that of Shop which begins with the same line. */
    private void add(String code) {
        Matcher type = TYPE.matcher(code);
        if (type.find()) {
            program.put(type.group(1), code);
            return;
        }
        String firstLine = code.substring(0, code.indexOf('\n') + 1);
        String shop = program.getOrDefault("Shop", "");
        int from = shop.indexOf(firstLine);
        assertThat(from).as(firstLine).isPositive();
        String end = "\n    }\n";
        program.put("Shop", shop.substring(0, from) + code + shop.substring(shop.indexOf(end, from) + end.length()));
    }

    private void compile(Path classes) throws Exception {
        Map<String, String> sources = new TreeMap<>();
        for (Map.Entry<String, String> file : program.entrySet()) {
            sources.put(file.getKey() + ".java", RecipesTest.withFreePorts(file.getValue()));
        }
        SnippetsTest.compile(classes, sources);
    }

    private static void runTests(ClassLoader loader) throws Exception {
        Class<?> test = loader.loadClass("ShopTest");
        Constructor<?> constructor = test.getConstructor();
        List<Method> methods = Stream.of(test.getDeclaredMethods())
                .filter(method -> method.isAnnotationPresent(Test.class))
                .toList();
        assertThat(methods).hasSize(2);
        for (Method method : methods) {
            method.setAccessible(true);
            method.invoke(constructor.newInstance());
        }
    }
}
