package org.verbena.it.environment;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Netty 4.1 on the class path, whole or in part, as the parent of another framework puts it there. */
@Timeout(120)
class NettyVersionTest {
    private static final Path OLD = ChildJvm.root().resolve("it/target/netty-4.1");

    @ParameterizedTest
    @ValueSource(
            strings = {
                "netty-common netty-buffer netty-transport netty-resolver",
                "netty-common",
                "netty-transport",
                "netty-buffer netty-resolver"
            })
    void theVersionThatIsThereIsNamed(String artifacts) throws Exception {
        List<String> replaced = List.of(artifacts.split(" "));
        Map<String, Path> jars =
                replaced.stream().collect(Collectors.toMap(name -> name, name -> OLD.resolve(name + ".jar")));
        ChildJvm.Outcome outcome = new ChildJvm("--enable-native-access=ALL-UNNAMED")
                .replacing(jars)
                .run(Echo.class, "soft", "shm", "auto");
        assertThat(outcome.output().lines().filter(line -> line.contains(" threw ")))
                .as(outcome.output())
                .hasSize(3)
                .allMatch(line -> line.contains(" threw ProviderUnavailableException: ")
                        && line.contains("Netty 4.2.11 or newer is needed, but " + replaced.getFirst() + " is 4.1."));
    }

    @Test
    void theDoctorNamesIt() throws Exception {
        ChildJvm.Outcome outcome = new ChildJvm("--enable-native-access=ALL-UNNAMED")
                .replacing(Map.of("netty-transport", OLD.resolve("netty-transport.jar")))
                .run(Diagnose.class);
        assertThat(outcome.exitCode()).as(outcome.output()).isZero();
        assertThat(outcome.output().lines())
                .anyMatch(
                        line -> line.startsWith("FAILURE requirements: ") && line.contains("netty-transport is 4.1."));
    }
}
