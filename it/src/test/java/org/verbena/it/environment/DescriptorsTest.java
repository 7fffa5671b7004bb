package org.verbena.it.environment;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A process that has used up its descriptors: errors name the limit, and all works when some are free again. */
@Timeout(120)
class DescriptorsTest {
    private static final int MAX = 300;

    @TempDir
    private Path sockets;

    @Test
    void errorsNameTheLimitAndAllWorksAgain() throws Exception {
        ChildJvm.Outcome outcome = new ChildJvm(
                        "--enable-native-access=ALL-UNNAMED", "-Dorg.verbena.shm.directory=" + sockets.resolve("shm"))
                .withDescriptors(MAX)
                .run(Descriptors.class, "soft", "shm");
        for (String provider : List.of("soft", "shm")) {
            outcome.succeeded(
                    provider + " connects again",
                    provider + " has clients leave that say nothing",
                    provider + " accepts again");
        }
        for (String refused : List.of(
                "soft does not connect", "soft does not listen", "shm does not connect", "shm does not listen")) {
            assertThat(outcome.output().lines())
                    .as(outcome.output())
                    .anyMatch(line -> line.startsWith(refused) && line.contains("ulimit -n"));
        }
    }
}
