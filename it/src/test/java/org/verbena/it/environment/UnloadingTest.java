package org.verbena.it.environment;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** An application that a container has ended leaves no classes behind. */
@Timeout(180)
@Tag("full")
class UnloadingTest {
    @TempDir
    private Path folder;

    /** Netty's GlobalEventExecutor keeps the loader of whoever used it first, so the first of four may stay. */
    @ParameterizedTest
    @ValueSource(strings = {"soft", "shm"})
    void allLoadersButTheFirstGo(String provider) throws Exception {
        String file = Unloading.class.getName().replace('.', '/') + ".class";
        Path alone = folder.resolve(file);
        Files.createDirectories(alone.getParent());
        Files.copy(ChildJvm.classesOf(Unloading.class).resolve(file), alone);
        ChildJvm jvm = new ChildJvm("--enable-native-access=ALL-UNNAMED");
        ChildJvm.Outcome outcome =
                jvm.withoutVerbena(folder).run(Unloading.class, ChildJvm.join(jvm.verbena(Echo.class)), provider);
        assertThat(outcome.output().lines()).as(outcome.output()).containsAnyOf("unloaded 3 of 4", "unloaded 4 of 4");
    }
}
