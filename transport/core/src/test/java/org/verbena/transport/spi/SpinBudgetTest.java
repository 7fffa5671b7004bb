package org.verbena.transport.spi;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.verbena.transport.CompletionLoopOptions;

class SpinBudgetTest {
    private long compiledMillis;
    private final SpinBudget adaptive = new SpinBudget(CompletionLoopOptions.ADAPTIVE_SPIN, 2, () -> compiledMillis);

    @Test
    void staysAtAFixedBudget() {
        SpinBudget budget = new SpinBudget(7_000, 2, () -> 0);
        budget.waited(10_000);
        budget.waited(SpinBudget.MAX_NANOS);
        assertThat(budget.nanos(0)).isEqualTo(7_000);
        assertThat(budget.isAdaptive()).isFalse();
        assertThat(new SpinBudget(0, 2, () -> 0).nanos(0)).isZero();
    }

    @Test
    void doesNotSpinUntilAWaitIsShort() {
        assertThat(adaptive.nanos(0)).isZero();
        adaptive.waited(SpinBudget.MAX_NANOS);
        assertThat(adaptive.nanos(0)).as("spinning would not have seen it").isZero();
        adaptive.waited(SpinBudget.MAX_NANOS - 1);
        assertThat(adaptive.nanos(0)).isEqualTo(SpinBudget.MIN_NANOS);
    }

    @Test
    void growsUntilItCoversTheWait() {
        for (int i = 0; i < 20; i++) {
            adaptive.waited(30_000);
        }
        assertThat(adaptive.nanos(0)).isBetween(30_000L, 60_000L);
        for (int i = 0; i < 20; i++) {
            adaptive.waited(SpinBudget.MAX_NANOS - 1);
        }
        assertThat(adaptive.nanos(0)).isEqualTo(SpinBudget.MAX_NANOS);
        adaptive.waited(1);
        assertThat(adaptive.nanos(0)).as("after a wait that it covered").isEqualTo(SpinBudget.MAX_NANOS);
    }

    @Test
    void shrinksToNothingWhenNothingComes() {
        for (int i = 0; i < 20; i++) {
            adaptive.waited(SpinBudget.MAX_NANOS - 1);
        }
        adaptive.waited(SpinBudget.MAX_NANOS);
        assertThat(adaptive.nanos(0)).isEqualTo(SpinBudget.MAX_NANOS / 2);
        for (int i = 0; i < 20; i++) {
            adaptive.waited(SpinBudget.MAX_NANOS);
        }
        assertThat(adaptive.nanos(0)).isZero();
    }

    @Test
    void neverSpinsWhereOneProcessorDoesAll() {
        SpinBudget budget = new SpinBudget(CompletionLoopOptions.ADAPTIVE_SPIN, 1, () -> 0);
        budget.waited(1);
        assertThat(budget.nanos(0)).isZero();
        assertThat(budget.isAdaptive()).isFalse();
        assertThat(new SpinBudget(7_000, 1, () -> 0).nanos(0)).as("asked for").isEqualTo(7_000);
    }

    @Test
    void blocksForAWhileWhereOthersWantTheProcessor() {
        adaptive.waited(SpinBudget.MIN_NANOS);
        long now = lose(0, 0.3);
        assertThat(adaptive.nanos(now)).isZero();
        assertThat(adaptive.nanos(now + SpinBudget.MIN_PAUSE_NANOS - 1)).isZero();
        assertThat(adaptive.nanos(now + SpinBudget.MIN_PAUSE_NANOS)).isEqualTo(SpinBudget.MIN_NANOS);
    }

    /** As on a machine with more threads than processors, whose work is short. */
    @Test
    void blocksWhereOthersWantTheProcessorOftenAndBriefly() {
        adaptive.waited(SpinBudget.MIN_NANOS);
        assertThat(adaptive.nanos(0)).isPositive();
        long now = 0;
        do {
            now += 30_000;
        } while (adaptive.polled(now) && now < 10 * SpinBudget.WINDOW_NANOS);
        assertThat(now).isLessThanOrEqualTo(2 * SpinBudget.WINDOW_NANOS);
        assertThat(adaptive.nanos(now)).isZero();
    }

    @Test
    void blocksLongerEachTimeThatNothingHasChanged() {
        adaptive.waited(SpinBudget.MIN_NANOS);
        long now = 0;
        long pause = SpinBudget.MIN_PAUSE_NANOS;
        for (int i = 0; i < 10; i++) {
            now = lose(now, 0.5);
            assertThat(adaptive.nanos(now + pause - 1)).isZero();
            now += pause;
            assertThat(adaptive.nanos(now)).isPositive();
            pause = Math.min(2 * pause, SpinBudget.MAX_PAUSE_NANOS);
        }
        assertThat(pause).isEqualTo(SpinBudget.MAX_PAUSE_NANOS);
        now = lose(now, 0);
        assertThat(adaptive.nanos(now)).as("all polls were quick").isPositive();
        now = lose(now, 0.5);
        assertThat(adaptive.nanos(now + SpinBudget.MIN_PAUSE_NANOS)).isPositive();
    }

    @Test
    void pollsOnWhereCompilersTakeTheTime() {
        adaptive.waited(SpinBudget.MIN_NANOS);
        long now = 0;
        for (int i = 0; i < 100; i++) {
            compiledMillis += SpinBudget.MIN_COMPILED_MILLIS;
            now = lose(now, 0.5);
            assertThat(adaptive.nanos(now)).isPositive();
        }
        compiledMillis += SpinBudget.MIN_COMPILED_MILLIS - 1;
        now = lose(now, 0.5);
        assertThat(adaptive.nanos(now)).as("something else took it").isZero();
    }

    @Test
    void pollsOnAfterASlowYieldNowAndThen() {
        adaptive.waited(SpinBudget.MIN_NANOS);
        long now = 0;
        for (int i = 0; i < 100; i++) {
            now = lose(now, 0.2);
            assertThat(adaptive.nanos(now)).isPositive();
        }
    }

    @Test
    void aFixedBudgetIsKeptWhateverOthersDo() {
        SpinBudget budget = new SpinBudget(7_000, 2, () -> 0);
        for (int i = 0; i < 100; i++) {
            assertThat(budget.polled(i * SpinBudget.WINDOW_NANOS)).isTrue();
        }
        assertThat(budget.nanos(0)).isEqualTo(7_000);
    }

    /** Polls for a window, of which others take a part in pieces of a millisecond. */
    private long lose(long fromNanos, double part) {
        long now = fromNanos;
        assertThat(adaptive.nanos(now)).isPositive();
        long lost = 0;
        boolean goesOn = true;
        for (long polled = 0; polled < SpinBudget.WINDOW_NANOS; ) {
            assertThat(goesOn).isTrue();
            boolean isLost = lost < part * SpinBudget.WINDOW_NANOS;
            long took = isLost ? 1_000_000 : 2_000;
            lost += isLost ? took : 0;
            polled += took;
            now += took;
            goesOn = adaptive.polled(now);
        }
        return now;
    }
}
