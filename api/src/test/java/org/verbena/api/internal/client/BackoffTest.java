package org.verbena.api.internal.client;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class BackoffTest {
    private static final int CLIENTS = 200;

    /** How long a server is away, in this test's own time. */
    private static final long AWAY_MILLIS = 20_000;

    private static final int SLOT_MILLIS = 100;

    @Test
    void theBoundGrowsFromTheFirstToTheLast() {
        Backoff backoff = new Backoff(50, 1000);
        assertThat(backoff.boundNanos(1)).isEqualTo(50);
        assertThat(backoff.boundNanos(2)).isEqualTo(80);
        assertThat(backoff.boundNanos(3)).isEqualTo(128);
        assertThat(backoff.boundNanos(7)).isEqualTo(838);
        assertThat(backoff.boundNanos(8)).isEqualTo(1000);
        assertThat(backoff.boundNanos(Integer.MAX_VALUE)).isEqualTo(1000);
        assertThat(Backoff.DEFAULTS.boundNanos(Integer.MAX_VALUE)).isEqualTo(TimeUnit.SECONDS.toNanos(30));
    }

    @Test
    void everyDelayUpToTheBoundIsPossible() {
        Backoff backoff = new Backoff(3, 3);
        Random random = new Random(1);
        assertThat(Arrays.stream(new int[100])
                        .mapToLong(any -> backoff.delayNanos(5, random))
                        .distinct()
                        .sorted())
                .containsExactly(0L, 1L, 2L, 3L);
    }

    @Test
    void aServerThatLeavesKeepsNoClientAwayForGood() {
        long second = TimeUnit.SECONDS.toNanos(1);
        assertThat(Backoff.DEFAULTS.heedNanos(0)).isZero();
        assertThat(Backoff.DEFAULTS.heedNanos(59 * second)).isEqualTo(59 * second);
        assertThat(Backoff.DEFAULTS.heedNanos(TimeUnit.MILLISECONDS.toNanos(0xffff_ffffL)))
                .isEqualTo(60 * second);
        assertThat(new Backoff(1, 3600 * second).heedNanos(4000 * second)).isEqualTo(3600 * second);
    }

    /** Clients that lose one server at the same moment: how many attempts it would get in each tenth of a second. */
    @Test
    void clientsThatLoseOneServerDoNotComeBackTogether() {
        long seed = System.nanoTime();
        System.out.println("seed " + seed);
        Random random = new Random(seed);
        int[] attempts = new int[(int) (AWAY_MILLIS / SLOT_MILLIS)];
        int[] back = new int[400];
        for (int client = 0; client < CLIENTS; client++) {
            long nowNanos = 0;
            for (int failures = 1; ; failures++) {
                nowNanos += Backoff.DEFAULTS.delayNanos(failures, random);
                long millis = TimeUnit.NANOSECONDS.toMillis(nowNanos);
                if (millis >= AWAY_MILLIS) {
                    back[(int) ((millis - AWAY_MILLIS) / SLOT_MILLIS)]++;
                    break;
                }
                attempts[(int) (millis / SLOT_MILLIS)]++;
            }
        }
        // All at once would be 200; these are some hundred standard deviations of what is expected.
        assertThat(Arrays.stream(attempts).skip(5_000 / SLOT_MILLIS).max().orElseThrow())
                .isLessThan(40);
        assertThat(Arrays.stream(back).max().orElseThrow()).isLessThan(40);
        assertThat(Arrays.stream(attempts).sum()).as("attempts in 20 s").isBetween(8 * CLIENTS, 20 * CLIENTS);
    }
}
