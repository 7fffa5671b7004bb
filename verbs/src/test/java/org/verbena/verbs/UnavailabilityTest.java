package org.verbena.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.verbs.ffm.CProbe;

/**
 * A library that is missing, or is another one, is reported and never crashes the JVM. Each case runs in a JVM of its
 * own.
 */
@Timeout(240)
class UnavailabilityTest {

    /** What the other JVM does: asks why, then tries all the same. */
    static final class Probe {
        public static void main(String[] arguments) {
            Throwable cause = Verbs.unavailabilityCause();
            System.out.println("cause " + cause);
            for (int i = 0; i < 2; i++) {
                try {
                    System.out.println("devices " + Verbs.devices());
                } catch (RuntimeException refused) {
                    System.out.println("refused " + refused);
                }
            }
        }
    }

    private static List<String> run(String... options) throws Exception {
        List<String> command = new ArrayList<>();
        command.add(System.getProperty("java.home") + "/bin/java");
        command.addAll(List.of(options));
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), Probe.class.getName()));
        return CProbe.run(command).lines().toList();
    }

    @Test
    void aMissingLibraryIsExplained() throws Exception {
        List<String> output =
                run("--enable-native-access=ALL-UNNAMED", "-Dorg.verbena.verbs.library=libnosuchverbs.so.1");
        assertThat(output).hasSize(3);
        assertThat(output.getFirst())
                .startsWith("cause java.lang.UnsatisfiedLinkError: libnosuchverbs.so.1 cannot be loaded")
                .contains("apt-get install libibverbs1");
        assertThat(output.subList(1, 3))
                .allSatisfy(line -> assertThat(line)
                        .startsWith(
                                "refused org.verbena.verbs.VerbsException: ibv_get_device_list() failed with ENOSYS")
                        .contains("apt-get install libibverbs1"));
    }

    @Test
    void anotherLibraryInItsPlaceIsExplained() throws Exception {
        List<String> output = run("--enable-native-access=ALL-UNNAMED", "-Dorg.verbena.verbs.library=libm.so.6");
        assertThat(output).hasSize(3);
        assertThat(output.getFirst()).contains("libm.so.6 has no function ibv_get_device_list");
    }

    @Test
    void deniedNativeAccessIsExplained() throws Exception {
        List<String> output = run("--illegal-native-access=deny");
        assertThat(output).hasSize(3);
        assertThat(output.getFirst()).contains("--enable-native-access");
    }
}
