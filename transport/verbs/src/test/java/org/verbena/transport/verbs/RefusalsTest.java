package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class RefusalsTest {
    private long now;
    private final Refusals refusals = new Refusals(() -> now);

    @Test
    void tellsOnceASecondAndHowManyWentUntold() {
        assertThat(refusals.takeTurn()).isZero();
        for (int i = 0; i < 5; i++) {
            assertThat(refusals.takeTurn()).isEqualTo(-1);
        }
        now += Refusals.INTERVAL_NANOS - 1;
        assertThat(refusals.takeTurn()).isEqualTo(-1);
        now++;
        assertThat(refusals.takeTurn()).isEqualTo(6);
        assertThat(refusals.takeTurn()).isEqualTo(-1);
        now += 10 * Refusals.INTERVAL_NANOS;
        assertThat(refusals.takeTurn()).isOne();
        assertThat(refusals.count()).isEqualTo(10);
    }
}
