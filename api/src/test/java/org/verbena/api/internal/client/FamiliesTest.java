package org.verbena.api.internal.client;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.List;
import org.junit.jupiter.api.Test;

class FamiliesTest {
    private static final InetSocketAddress FOUR = of("10.0.0.1");
    private static final InetSocketAddress FOUR_TOO = of("10.0.0.2");
    private static final InetSocketAddress SIX = of("2001:db8::1");
    private static final InetSocketAddress SIX_TOO = of("2001:db8::2");

    private final Families families = new Families();

    private static InetSocketAddress of(String literal) {
        return new InetSocketAddress(InetAddress.ofLiteral(literal), 7471);
    }

    @Test
    void allAddressesOfTheOnlyFamilyAreUsed() {
        families.update(List.of(FOUR, FOUR_TOO));
        assertThat(families.inUse()).containsExactly(FOUR, FOUR_TOO);
        assertThat(families.hasMore()).isFalse();
        families.won(FOUR);
        assertThat(families.inUse()).containsExactly(FOUR, FOUR_TOO);
    }

    @Test
    void thePreferredFamilyIsFirstAndTheOtherFollows() {
        families.update(List.of(SIX, FOUR, SIX_TOO, FOUR_TOO));
        assertThat(families.inUse()).containsExactly(SIX, SIX_TOO);
        assertThat(families.hasMore()).isTrue();
        families.widen();
        assertThat(families.inUse()).containsExactly(SIX, FOUR, SIX_TOO, FOUR_TOO);
        assertThat(families.isOpen()).isTrue();
        assertThat(families.hasMore()).isFalse();
    }

    @Test
    void theFirstThatConnectsDecides() {
        families.update(List.of(SIX, FOUR, FOUR_TOO));
        families.widen();
        families.won(FOUR_TOO);
        assertThat(families.isOpen()).isFalse();
        assertThat(families.inUse()).containsExactly(FOUR, FOUR_TOO);
        families.update(List.of(SIX, FOUR));
        assertThat(families.inUse()).containsExactly(FOUR);
        families.widen(); // all of them are lost
        assertThat(families.inUse()).containsExactly(SIX, FOUR);
    }

    @Test
    void aFamilyThatIsGoneDecidesNothing() {
        families.update(List.of(FOUR, SIX));
        families.won(FOUR);
        families.update(List.of(SIX, SIX_TOO));
        assertThat(families.inUse()).containsExactly(SIX, SIX_TOO);
        families.update(List.of());
        assertThat(families.inUse()).isEmpty();
        assertThat(families.hasMore()).isFalse();
    }
}
