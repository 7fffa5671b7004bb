package org.verbena.api.internal.request;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/** When requests are refused for their age; times in units of which an interval has 100, and the target 5. */
class QueueAgeTest {
    private final QueueAge age = new QueueAge(5, 100, 0);

    /** Requests every 10 units that have waited so long; returns whether one was refused. */
    private boolean refuses(long waited, int from, int to) {
        boolean refused = false;
        for (int now = from; now < to; now += 10) {
            refused |= age.refuses(waited, now);
        }
        return refused;
    }

    @Test
    void aBurstIsNotRefused() {
        assertThat(refuses(80, 10, 90)).isFalse();
        assertThat(age.refuses(5, 95)).isFalse();
        assertThat(refuses(80, 100, 190))
                .as("one of the last interval found the queue short")
                .isFalse();
    }

    @Test
    void aStandingQueueIsCutToTwiceTheTarget() {
        assertThat(refuses(80, 10, 100)).as("during the first interval").isFalse();
        assertThat(age.refuses(80, 100)).isTrue();
        assertThat(age.refuses(11, 101)).isTrue();
        assertThat(age.refuses(10, 102)).isFalse();
        assertThat(age.refuses(6, 103)).isFalse();
        assertThat(refuses(80, 110, 200)).isTrue();
        assertThat(age.refuses(80, 205))
                .as("6 was the least, so it still stands")
                .isTrue();
    }

    @Test
    void itEndsWithAnIntervalThatHasSeenAShortQueue() {
        refuses(80, 10, 100);
        assertThat(age.refuses(80, 100)).isTrue();
        assertThat(age.refuses(5, 110)).isFalse();
        assertThat(age.refuses(80, 120)).as("until the interval is over").isTrue();
        assertThat(age.refuses(80, 200)).isFalse();
        assertThat(refuses(80, 210, 300)).isFalse();
        assertThat(age.refuses(80, 305))
                .as("another interval without a short queue")
                .isTrue();
    }

    @Test
    void anIntervalWithoutRequestsEndsItToo() {
        refuses(80, 10, 100);
        assertThat(age.refuses(80, 100)).isTrue();
        assertThat(age.refuses(80, 300)).isFalse();
    }
}
