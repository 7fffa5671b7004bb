package org.verbena.api.internal.client;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.List;
import org.junit.jupiter.api.Test;

/** In the test's own time. */
class FamiliesTest {
    private static final InetSocketAddress FOUR = of("10.0.0.1");
    private static final InetSocketAddress FOUR_TOO = of("10.0.0.2");
    private static final InetSocketAddress SIX = of("2001:db8::1");
    private static final InetSocketAddress SIX_TOO = of("2001:db8::2");

    private final ManualControl control = new ManualControl();
    private List<InetSocketAddress> inUse = List.of();
    private final Families families = new Families(control, addresses -> inUse = addresses);

    private static InetSocketAddress of(String literal) {
        return new InetSocketAddress(InetAddress.ofLiteral(literal), 7471);
    }

    @Test
    void allAddressesOfTheOnlyFamilyAreUsed() {
        families.found0(List.of(FOUR, FOUR_TOO));
        assertThat(inUse).containsExactly(FOUR, FOUR_TOO);
        assertThat(control.pending()).isZero();
        families.won0(FOUR);
        assertThat(inUse).containsExactly(FOUR, FOUR_TOO);
        assertThat(families.failed0()).isFalse();
        assertThat(control.pending()).isZero();
    }

    @Test
    void thePreferredFamilyHasAHeadStart() throws Exception {
        families.found0(List.of(SIX, FOUR, SIX_TOO, FOUR_TOO));
        assertThat(inUse).containsExactly(SIX, SIX_TOO);
        control.advance(Families.DELAY_NANOS - 1);
        assertThat(inUse).containsExactly(SIX, SIX_TOO);
        control.advance(1);
        assertThat(inUse).containsExactly(SIX, FOUR, SIX_TOO, FOUR_TOO);
        assertThat(control.pending()).isZero();
    }

    @Test
    void theOtherFamilyIsNotTriedWhenThePreferredOneIsInTime() throws Exception {
        families.found0(List.of(SIX, FOUR));
        control.advance(Families.DELAY_NANOS - 1);
        families.won0(SIX);
        assertThat(control.pending()).isZero();
        control.advance(10 * Families.DELAY_NANOS);
        families.found0(List.of(SIX, FOUR));
        assertThat(inUse).containsExactly(SIX);
        assertThat(control.pending()).as("it is decided").isZero();
    }

    @Test
    void theOtherFamilyIsTriedAtOnceWhenThePreferredOneFails() {
        families.found0(List.of(SIX, FOUR));
        assertThat(families.failed0()).isTrue();
        assertThat(inUse).containsExactly(SIX, FOUR);
        assertThat(control.pending()).isZero();
        assertThat(families.failed0()).as("there is no other").isFalse();
    }

    @Test
    void theFirstThatConnectsDecides() throws Exception {
        families.found0(List.of(SIX, FOUR, FOUR_TOO));
        control.advance(Families.DELAY_NANOS);
        families.won0(FOUR_TOO);
        assertThat(inUse).as("the others are left").containsExactly(FOUR, FOUR_TOO);
        families.won0(FOUR);
        families.found0(List.of(SIX, FOUR));
        assertThat(inUse).containsExactly(FOUR);
    }

    /** A server that restarts is there again by the way that it had; but that way may be the one that has ended. */
    @Test
    void theLastThatWonHasTheHeadStartWhenItIsLost() throws Exception {
        families.found0(List.of(SIX, FOUR));
        control.advance(Families.DELAY_NANOS);
        families.won0(FOUR);
        assertThat(families.failed0()).isTrue();
        assertThat(inUse).containsExactly(FOUR);
        assertThat(families.failed0()).as("an attempt failed as well").isTrue();
        assertThat(inUse).containsExactly(FOUR);
        control.advance(Families.DELAY_NANOS);
        assertThat(inUse).containsExactly(SIX, FOUR);
        families.won0(SIX);
        assertThat(inUse).containsExactly(SIX);
        assertThat(families.failed0()).isTrue();
        families.won0(SIX);
        assertThat(control.pending()).isZero();
        assertThat(inUse).containsExactly(SIX);
    }

    @Test
    void aFamilyThatIsGoneDecidesNothing() {
        families.found0(List.of(FOUR, SIX));
        families.won0(FOUR);
        families.found0(List.of(SIX, SIX_TOO));
        assertThat(inUse).containsExactly(SIX, SIX_TOO);
        families.found0(List.of());
        assertThat(inUse).isEmpty();
        assertThat(families.failed0()).isFalse();
    }

    @Test
    void whatIsForgottenBeginsAsAtFirst() throws Exception {
        families.found0(List.of(SIX, FOUR));
        control.advance(Families.DELAY_NANOS);
        families.won0(FOUR);
        families.forget0();
        families.found0(List.of(SIX, FOUR));
        assertThat(inUse).containsExactly(SIX);
        families.forget0();
        assertThat(control.pending()).isZero();
    }
}
