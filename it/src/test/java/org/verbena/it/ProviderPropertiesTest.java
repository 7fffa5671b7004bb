package org.verbena.it;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.verbena.transport.ProviderUnavailableException;
import org.verbena.transport.provider.ProviderChoice;
import org.verbena.transport.spi.ChildJvm;
import org.verbena.transport.spi.RdmaProvider;

/**
 * A malformed property of one provider disables that one and no other, and says which property, whenever it is asked.
 */
@Timeout(240)
class ProviderPropertiesTest {
    private static final List<String> NAMES = List.of("verbs", "soft", "shm");

    /** Asks for each provider twice, and for the one that is chosen. */
    static final class Asking {
        private Asking() {}

        public static void main(String... arguments) {
            for (int i = 0; i < 2; i++) {
                for (String name : NAMES) {
                    try {
                        System.out.println(
                                name + " found: " + ProviderChoice.find(name).name());
                    } catch (ProviderUnavailableException refused) {
                        System.out.println(name + " refused: " + refused.getMessage());
                    }
                }
            }
            System.out.println(
                    "chosen: " + ProviderChoice.choose("auto", null).provider().name());
            System.out.println("installed: "
                    + ProviderChoice.installed().stream()
                            .map(RdmaProvider::name)
                            .toList());
            ProviderChoice.installed().forEach(RdmaProvider::counters);
        }
    }

    @ParameterizedTest
    @CsvSource({
        "soft, org.verbena.soft.crc, perhaps",
        "soft, org.verbena.soft.mpaRevision, 3",
        "soft, org.verbena.soft.io, epoll",
        "soft, org.verbena.soft.handshakeTimeoutMillis, 1e3",
        "shm, org.verbena.shm.ringBytes, 100000",
        "shm, org.verbena.shm.sharedReceiveDepth, many",
        "verbs, org.verbena.verbs.library, /nowhere/libibverbs.so.1",
    })
    void disablesItsProviderAlone(String provider, String property, String value) throws Exception {
        List<String> lines = ChildJvm.run(List.of("-D" + property + "=" + value), Asking.class)
                .lines()
                .toList();
        String lastPart = property.substring(property.lastIndexOf('.') + 1);
        assertThat(lines)
                .filteredOn(line -> line.startsWith(provider + " refused: "))
                .hasSize(2)
                .allSatisfy(line -> assertThat(line).contains(value))
                .allSatisfy(line -> assertThat(line).contains(lastPart));
        for (String other : List.of("soft", "shm")) {
            if (!other.equals(provider)) {
                assertThat(lines)
                        .filteredOn(line -> line.equals(other + " found: " + other))
                        .hasSize(2);
            }
        }
        assertThat(lines).contains("chosen: " + (provider.equals("soft") ? "shm" : "soft"));
        assertThat(lines)
                .filteredOn(line -> line.startsWith("installed: "))
                .singleElement()
                .satisfies(line -> assertThat(line).contains(NAMES));
    }
}
