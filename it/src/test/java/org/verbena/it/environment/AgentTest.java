package org.verbena.it.environment;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * OpenTelemetry's agent, which changes the classes of gRPC and Netty as they are loaded, sees the calls at both ends.
 */
@Timeout(180)
@Tag("full")
class AgentTest {
    private static final Path AGENT = ChildJvm.root().resolve("it/target/environment/opentelemetry-javaagent.jar");

    @Test
    void callsHaveSpansAtBothEnds() throws Exception {
        ChildJvm.Outcome outcome = new ChildJvm(
                        "--enable-native-access=ALL-UNNAMED",
                        "-javaagent:" + AGENT,
                        "-Dotel.traces.exporter=console",
                        "-Dotel.metrics.exporter=none",
                        "-Dotel.logs.exporter=none")
                .withTheTestsLibraries()
                .run(Calls.class, "soft", "shm");
        outcome.succeeded("soft answered", "shm answered");
        for (String end : new String[] {"CLIENT", "SERVER"}) {
            assertThat(outcome.output().lines())
                    .as(outcome.output())
                    .filteredOn(line -> line.contains("TestService/EmptyCall") && line.contains(end))
                    .hasSize(2);
        }
    }
}
