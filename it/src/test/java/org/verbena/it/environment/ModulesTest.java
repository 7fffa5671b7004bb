package org.verbena.it.environment;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Verbena as modules, and in an image of jlink, where the JVM denies native access to all but the documented ones. */
@Timeout(120)
class ModulesTest {
    private static final Pattern LIST =
            Pattern.compile("--enable-native-access=(org\\.verbena\\.[a-z.]+(?:,org\\.verbena\\.[a-z.]+)*)");

    @TempDir
    private Path folder;

    /** The flag that docs/running.md prints. */
    private static String documentedFlag() throws Exception {
        List<String> lists = LIST.matcher(Files.readString(ChildJvm.root().resolve("docs/running.md")))
                .results()
                .map(MatchResult::group)
                .toList();
        assertThat(lists).hasSize(1);
        return lists.getFirst();
    }

    @Test
    void softAndShmEchoOnTheModulePath() throws Exception {
        new ChildJvm("--illegal-native-access=deny", documentedFlag())
                .onModulePath()
                .run(Echo.class, "soft", "shm")
                .succeeded("soft echoes", "shm echoes");
    }

    /** librdmacm may be missing here; that the modules may use it is what the documented list is for. */
    @Test
    void theBindingsAreAllowed() throws Exception {
        ChildJvm.Outcome outcome = new ChildJvm("--illegal-native-access=deny", documentedFlag())
                .onModulePath()
                .run(Bindings.class);
        assertThat(outcome.output()).doesNotContain("native access").doesNotContain("IllegalCaller");
    }

    @Test
    void softAndShmEchoInAnImage() throws Exception {
        Path image = folder.resolve("image");
        ChildJvm modules = new ChildJvm("--illegal-native-access=deny", documentedFlag());
        ChildJvm.run(
                        List.of(
                                Path.of(System.getProperty("java.home"), "bin/jlink")
                                        .toString(),
                                "--module-path",
                                ChildJvm.join(modules.modulePath()),
                                "--add-modules",
                                "org.verbena.api,org.verbena.transport.soft,org.verbena.transport.shm,"
                                        + "org.verbena.transport.verbs",
                                "--output",
                                image.toString()),
                        null)
                .succeeded();
        modules.in(image.resolve("bin/java")).run(Echo.class, "soft", "shm").succeeded("soft echoes", "shm echoes");
    }
}
