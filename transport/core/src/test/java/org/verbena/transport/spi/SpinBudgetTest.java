package org.verbena.transport.spi;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class SpinBudgetTest {
    private final SpinBudget adaptive = new SpinBudget(CompletionLoopOptions.ADAPTIVE_SPIN, 2);

    @Test
    void staysAtAFixedBudget() {
        SpinBudget budget = new SpinBudget(7_000, 2);
        budget.waited(10_000);
        budget.waited(SpinBudget.MAX_NANOS);
        assertThat(budget.nanos()).isEqualTo(7_000);
        assertThat(budget.isAdaptive()).isFalse();
        assertThat(new SpinBudget(0, 2).nanos()).isZero();
    }

    @Test
    void doesNotSpinUntilAWaitIsShort() {
        assertThat(adaptive.nanos()).isZero();
        adaptive.waited(SpinBudget.MAX_NANOS);
        assertThat(adaptive.nanos()).as("spinning would not have seen it").isZero();
        adaptive.waited(SpinBudget.MAX_NANOS - 1);
        assertThat(adaptive.nanos()).isEqualTo(SpinBudget.MIN_NANOS);
    }

    @Test
    void growsUntilItCoversTheWait() {
        for (int i = 0; i < 20; i++) {
            adaptive.waited(30_000);
        }
        assertThat(adaptive.nanos()).isBetween(30_000L, 60_000L);
        for (int i = 0; i < 20; i++) {
            adaptive.waited(SpinBudget.MAX_NANOS - 1);
        }
        assertThat(adaptive.nanos()).isEqualTo(SpinBudget.MAX_NANOS);
        adaptive.waited(1);
        assertThat(adaptive.nanos()).as("after a wait that it covered").isEqualTo(SpinBudget.MAX_NANOS);
    }

    @Test
    void shrinksToNothingWhenNothingComes() {
        for (int i = 0; i < 20; i++) {
            adaptive.waited(SpinBudget.MAX_NANOS - 1);
        }
        adaptive.waited(SpinBudget.MAX_NANOS);
        assertThat(adaptive.nanos()).isEqualTo(SpinBudget.MAX_NANOS / 2);
        for (int i = 0; i < 20; i++) {
            adaptive.waited(SpinBudget.MAX_NANOS);
        }
        assertThat(adaptive.nanos()).isZero();
    }

    @Test
    void neverSpinsWhereOneProcessorDoesAll() {
        SpinBudget budget = new SpinBudget(CompletionLoopOptions.ADAPTIVE_SPIN, 1);
        budget.waited(1);
        assertThat(budget.nanos()).isZero();
        assertThat(budget.isAdaptive()).isFalse();
        assertThat(new SpinBudget(7_000, 1).nanos()).as("asked for").isEqualTo(7_000);
    }
}
