package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.verbena.transport.ProviderException;
import org.verbena.verbs.memory.AccessFlag;

@Tag("no-stub")
class RelaxedOrderingTest {
    private static List<String> cpu(String vendor, int family) {
        return List.of("processor\t: 0", "vendor_id\t: " + vendor, "cpu family\t: " + family, "model\t\t: 1");
    }

    @ParameterizedTest
    @CsvSource({
        "auto, AuthenticAMD, 23, ON",
        "auto, AuthenticAMD, 25, ON",
        "auto, AuthenticAMD, 26, ON",
        "auto, AuthenticAMD, 21, OFF",
        "auto, GenuineIntel, 6, OFF",
        "on, GenuineIntel, 6, ON",
        "all, GenuineIntel, 6, ALL",
        "off, AuthenticAMD, 25, OFF"
    })
    void isDecidedByTheProcessor(String setting, String vendor, int family, RelaxedOrdering wanted) {
        assertThat(RelaxedOrdering.wanted(setting, cpu(vendor, family))).isEqualTo(wanted);
    }

    @Test
    void otherProcessorsWriteInOrder() {
        assertThat(RelaxedOrdering.wanted("auto", List.of("CPU implementer\t: 0x41")))
                .isEqualTo(RelaxedOrdering.OFF);
        assertThat(RelaxedOrdering.wanted("auto", List.of())).isEqualTo(RelaxedOrdering.OFF);
    }

    @Test
    void leavesMemoryThatPeersWriteInOrder() {
        Set<AccessFlag> own = Set.of(AccessFlag.LOCAL_WRITE, AccessFlag.REMOTE_READ);
        Set<AccessFlag> written = Set.of(AccessFlag.LOCAL_WRITE, AccessFlag.REMOTE_WRITE);
        Set<AccessFlag> counted = Set.of(AccessFlag.LOCAL_WRITE, AccessFlag.REMOTE_ATOMIC);
        assertThat(List.of(RelaxedOrdering.values()))
                .filteredOn(each -> each.covers(own))
                .containsExactly(RelaxedOrdering.ON, RelaxedOrdering.ALL);
        assertThat(List.of(RelaxedOrdering.values()))
                .filteredOn(each -> each.covers(written))
                .containsExactly(RelaxedOrdering.ALL);
        assertThat(List.of(RelaxedOrdering.values())).noneMatch(each -> each.covers(counted));
    }

    @Test
    void refusesAnotherSetting() {
        assertThatThrownBy(() -> RelaxedOrdering.wanted("yes", List.of())).isInstanceOf(ProviderException.class);
    }
}
