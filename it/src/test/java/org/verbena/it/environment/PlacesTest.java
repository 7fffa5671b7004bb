package org.verbena.it.environment;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Programs with no home, no environment, and no folder that they can write to. */
@Timeout(120)
class PlacesTest {
    private static final String[] NOWHERE = {
        "--enable-native-access=ALL-UNNAMED",
        "-Dorg.verbena.stat=true",
        "-Duser.home=/proc/nowhere",
        "-Djava.io.tmpdir=/proc/nowhere",
        "-Duser.name=?"
    };

    @TempDir
    private Path folder;

    /** The figures have no file then, and that is all. */
    @Test
    void softNeedsNoFolder() throws Exception {
        new ChildJvm(NOWHERE)
                .withEnvironment(Map.of("XDG_RUNTIME_DIR", "/proc/nowhere"))
                .run(Echo.class, "soft")
                .succeeded("soft echoes");
    }

    @Test
    void shmSaysThatItNeedsOne() throws Exception {
        ChildJvm.Outcome outcome =
                new ChildJvm(NOWHERE).withEnvironment(Map.of()).run(Echo.class, "shm");
        assertThat(outcome.output().lines())
                .as(outcome.output())
                .anyMatch(line -> line.startsWith("shm threw ProviderUnavailableException")
                        && line.contains("/proc/nowhere")
                        && line.contains("org.verbena.shm.directory"));
    }

    @Test
    void shmTakesTheFolderThatItIsGiven() throws Exception {
        String[] flags = Arrays.copyOf(NOWHERE, NOWHERE.length + 1);
        flags[NOWHERE.length] = "-Dorg.verbena.shm.directory=" + Files.createDirectory(folder.resolve("shm"));
        new ChildJvm(flags).withEnvironment(Map.of()).run(Echo.class, "shm").succeeded("shm echoes");
    }

    /** It makes a lock file in its folder. */
    @Test
    void theDoctorNamesTheFolderThatShmUses() throws Exception {
        Path chosen = Files.createDirectory(folder.resolve("chosen"));
        Path runtime = Files.createDirectory(folder.resolve("runtime"));
        String access = "--enable-native-access=ALL-UNNAMED";
        Map<String, String> login = Map.of("XDG_RUNTIME_DIR", runtime.toString());
        assertThatTheDoctorNames(
                chosen, new ChildJvm(access, "-Dorg.verbena.shm.directory=" + chosen).withEnvironment(login));
        assertThatTheDoctorNames(runtime.resolve("verbena-shm"), new ChildJvm(access).withEnvironment(login));
    }

    private static void assertThatTheDoctorNames(Path used, ChildJvm jvm) throws Exception {
        ChildJvm.Outcome outcome = jvm.run(Diagnose.class);
        assertThat(used).isDirectoryContaining(each -> each.endsWith("lock"));
        assertThat(outcome.output().lines())
                .as(outcome.output())
                .anyMatch(line -> line.startsWith("OK loopback on shm") && line.endsWith(" " + used));
    }
}
