package org.verbena.api.internal.request;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Random;
import org.junit.jupiter.api.Test;

class LatencyTest {
    @Test
    void findsTheTimeOf95OfAHundred() {
        long seed = System.nanoTime();
        System.out.println("seed " + seed);
        Random random = new Random(seed);
        Latency latency = new Latency();
        for (int i = 0; i < 100; i++) {
            latency.took(1 + random.nextInt(1_000_000));
        }
        assertThat(latency.estimateNanos()).as("too few are known").isZero();
        for (int i = 0; i < 20_000; i++) {
            latency.took(1 + random.nextInt(1_000_000));
        }
        assertThat(latency.estimateNanos()).isBetween(800_000L, 1_100_000L);
        for (int i = 0; i < 20_000; i++) {
            latency.took(1 + random.nextInt(10_000));
        }
        assertThat(latency.estimateNanos()).as("it follows").isBetween(8_000L, 11_000L);
    }
}
