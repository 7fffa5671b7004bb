package org.verbena.it.environment;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A JVM that denies native access, which a later JDK does by default: the first use says which flag to set. */
@Timeout(120)
class NativeAccessTest {
    private static final String DENY = "--illegal-native-access=deny";
    private static final String FLAG = "--enable-native-access=";

    @Test
    void providersNameTheFlag() throws Exception {
        ChildJvm.Outcome outcome = new ChildJvm(DENY).run(Echo.class, "soft", "shm", "verbs", "auto", "all");
        assertThat(outcome.output().lines().filter(line -> line.contains(" threw ")))
                .as(outcome.output())
                .hasSize(5)
                .allMatch(line ->
                        line.contains(" threw ProviderUnavailableException: ") && line.contains(FLAG + "ALL-UNNAMED"));
    }

    @Test
    void bindingsNameTheFlag() throws Exception {
        ChildJvm.Outcome outcome = new ChildJvm(DENY).run(Bindings.class);
        assertThat(outcome.output().lines().filter(line -> line.contains(": returned ") || line.contains(": threw ")))
                .as(outcome.output())
                .hasSize(5)
                .allMatch(line -> line.contains(FLAG + "ALL-UNNAMED"));
    }

    @Test
    void theDoctorNamesTheFlag() throws Exception {
        ChildJvm.Outcome outcome = new ChildJvm(DENY).run(Diagnose.class);
        assertThat(outcome.exitCode()).as(outcome.output()).isZero();
        assertThat(outcome.output().lines())
                .anyMatch(line -> line.startsWith("FAILURE requirements: ") && line.contains(FLAG + "ALL-UNNAMED"));
    }

    @Test
    void theFlagIsAllThatIsNeeded() throws Exception {
        new ChildJvm(DENY, FLAG + "ALL-UNNAMED").run(Echo.class, "soft", "shm").succeeded("soft echoes", "shm echoes");
    }

    @Test
    void modulesThatAreNotNamedAreNamed() throws Exception {
        ChildJvm.Outcome outcome = new ChildJvm(DENY, FLAG + "org.verbena.transport")
                .onModulePath()
                .run(Echo.class, "soft", "verbs");
        assertThat(outcome.output().lines())
                .as(outcome.output())
                .contains("soft echoes")
                .anyMatch(line -> line.startsWith("verbs threw ProviderUnavailableException")
                        && line.contains("org.verbena.verbs"));
    }

    @Test
    void theConnectionManagersModuleIsNamedIfItIsMissing() throws Exception {
        ChildJvm.Outcome outcome = new ChildJvm(DENY, FLAG + "org.verbena.transport,org.verbena.verbs")
                .onModulePath()
                .run(Bindings.class);
        assertThat(outcome.output().lines())
                .as(outcome.output())
                .anyMatch(line -> line.startsWith("verbs call:") && !line.contains("native access"))
                .anyMatch(line -> line.startsWith("channel: threw java.lang.UnsupportedOperationException")
                        && line.contains("org.verbena.cm"))
                .anyMatch(line -> line.startsWith("cm cause:") && line.contains("org.verbena.cm"));
    }
}
