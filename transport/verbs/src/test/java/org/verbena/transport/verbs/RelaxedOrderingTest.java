package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.verbena.transport.ProviderException;

class RelaxedOrderingTest {
    private static List<String> cpu(String vendor, int family) {
        return List.of("processor\t: 0", "vendor_id\t: " + vendor, "cpu family\t: " + family, "model\t\t: 1");
    }

    @ParameterizedTest
    @CsvSource({
        "auto, AuthenticAMD, 23, true",
        "auto, AuthenticAMD, 25, true",
        "auto, AuthenticAMD, 26, true",
        "auto, AuthenticAMD, 21, false",
        "auto, GenuineIntel, 6, false",
        "on, GenuineIntel, 6, true",
        "off, AuthenticAMD, 25, false"
    })
    void isDecidedByTheProcessor(String setting, String vendor, int family, boolean wanted) {
        assertThat(RelaxedOrdering.isWanted(setting, cpu(vendor, family))).isEqualTo(wanted);
    }

    @Test
    void otherProcessorsWriteInOrder() {
        assertThat(RelaxedOrdering.isWanted("auto", List.of("CPU implementer\t: 0x41")))
                .isFalse();
        assertThat(RelaxedOrdering.isWanted("auto", List.of())).isFalse();
    }

    @Test
    void refusesAnotherSetting() {
        assertThatThrownBy(() -> RelaxedOrdering.isWanted("yes", List.of())).isInstanceOf(ProviderException.class);
    }
}
