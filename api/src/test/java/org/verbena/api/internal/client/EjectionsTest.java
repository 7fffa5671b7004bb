package org.verbena.api.internal.client;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class EjectionsTest {
    private static final long MOST = 30 * Ejections.FIRST_NANOS;

    @Test
    void oneThatAnswersAgainAndAgainOnlyForAShortTimeIsLeftAloneForLonger() {
        Ejections ejections = new Ejections();
        long now = Long.MAX_VALUE - Ejections.FIRST_NANOS; // the clock may pass its end
        long expected = Ejections.FIRST_NANOS;
        for (int i = 0; i < 20; i++) {
            assertThat(ejections.next(now, MOST)).isEqualTo(Math.min(expected, MOST));
            now += Math.min(expected, MOST) + 1;
            expected *= 2;
        }
    }

    @Test
    void oneThatHasAnsweredForLongIsAsGoodAsAny() {
        Ejections ejections = new Ejections();
        long now = 0;
        for (int i = 0; i < 5; i++) {
            assertThat(ejections.next(now, MOST)).isEqualTo(Ejections.FIRST_NANOS);
            now += (1 + Ejections.PAST) * Ejections.FIRST_NANOS;
        }
        ejections.next(now, MOST);
        now += Ejections.FIRST_NANOS;
        long second = ejections.next(now, MOST);
        assertThat(second).isEqualTo(2 * Ejections.FIRST_NANOS);
        assertThat(ejections.next(now + (1 + Ejections.PAST) * second, MOST)).isEqualTo(Ejections.FIRST_NANOS);
    }

    @Test
    void theFirstTimeIsTheLeast() {
        assertThat(new Ejections().next(0, 1)).isEqualTo(Ejections.FIRST_NANOS);
    }
}
