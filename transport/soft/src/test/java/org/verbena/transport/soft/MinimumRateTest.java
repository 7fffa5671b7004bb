package org.verbena.transport.soft;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/** What is owed must come at a minimum rate. */
class MinimumRateTest {
    private static final int TICKS = 4;
    private static final int MIN = 1000;

    private final MinimumRate rate = new MinimumRate();

    private int ticksUntilTooSlow(int bytesPerTick, int max) {
        for (int tick = 1; tick <= max; tick++) {
            if (rate.isTooSlow(tick, TICKS, true, 7, (long) tick * bytesPerTick, MIN)) {
                return tick;
            }
        }
        return -1;
    }

    @Test
    void silenceIsTooSlow() {
        // The first look is the beginning.
        assertThat(ticksUntilTooSlow(0, 100)).isEqualTo(1 + TICKS + 1);
    }

    /** The first item has the number 0, and the loop may have passed any number of ticks before. */
    @Test
    void aConnectionOnAnOldLoopHasAsMuchTime() {
        for (int tick = 1000; tick <= 1000 + TICKS; tick++) {
            assertThat(rate.isTooSlow(tick, TICKS, true, 0, 0, MIN)).isFalse();
        }
        assertThat(rate.isTooSlow(1000 + TICKS + 1, TICKS, true, 0, 0, MIN)).isTrue();
    }

    @Test
    void aByteNowAndThenIsTooSlow() {
        assertThat(ticksUntilTooSlow(1, 100)).isEqualTo(1 + TICKS + 1);
    }

    @Test
    void enoughIsEnoughForEver() {
        assertThat(ticksUntilTooSlow(MIN / (TICKS + 1), 10_000)).isEqualTo(-1);
    }

    @Test
    void stoppingLaterIsTooSlowToo() {
        for (int tick = 1; tick <= 20; tick++) {
            assertThat(rate.isTooSlow(tick, TICKS, true, 7, tick * 1_000_000L, MIN))
                    .isFalse();
        }
        int stopped = 20;
        while (!rate.isTooSlow(++stopped, TICKS, true, 7, 20_000_000L, MIN)) {
            assertThat(stopped).isLessThan(40);
        }
        assertThat(stopped).isLessThanOrEqualTo(20 + 2 * (TICKS + 1));
    }

    @Test
    void completionRestartsTheMeasurement() {
        for (int tick = 1; tick <= 100; tick++) {
            assertThat(rate.isTooSlow(tick, TICKS, true, tick / 3, 0, MIN)).isFalse();
        }
        for (int tick = 101; tick <= 200; tick++) {
            assertThat(rate.isTooSlow(tick, TICKS, tick % 4 != 0, 50, 0, MIN)).isFalse();
        }
    }
}
