package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.verbena.transport.spi.CompletionLoopOptions;

class SpinBudgetTest {

    @Test
    void staysAtAFixedBudget() {
        SpinBudget budget = new SpinBudget(7_000);
        budget.paid();
        budget.wasInVain();
        budget.wokenAfter(1);
        assertThat(budget.nanos()).isEqualTo(7_000);
        assertThat(budget.isAdaptive()).isFalse();
        assertThat(new SpinBudget(0).nanos()).isZero();
    }

    @Test
    void doesNotSpinUntilACompletionComesSoonAfterBlocking() {
        SpinBudget budget = new SpinBudget(CompletionLoopOptions.ADAPTIVE_SPIN);
        assertThat(budget.nanos()).isZero();
        budget.wokenAfter(SpinBudget.MAX_NANOS);
        assertThat(budget.nanos()).as("spinning would not have seen it").isZero();
        budget.wokenAfter(SpinBudget.MAX_NANOS - 1);
        assertThat(budget.nanos()).isEqualTo(SpinBudget.MIN_NANOS);
    }

    @Test
    void growsToItsLimitWhileItPays() {
        SpinBudget budget = new SpinBudget(CompletionLoopOptions.ADAPTIVE_SPIN);
        budget.wokenAfter(0);
        for (int i = 0; i < 20; i++) {
            budget.paid();
            assertThat(budget.nanos()).isBetween(SpinBudget.MIN_NANOS, SpinBudget.MAX_NANOS);
        }
        assertThat(budget.nanos()).isEqualTo(SpinBudget.MAX_NANOS);
    }

    @Test
    void shrinksToNothingInVain() {
        SpinBudget budget = new SpinBudget(CompletionLoopOptions.ADAPTIVE_SPIN);
        budget.wokenAfter(0);
        for (int i = 0; i < 20; i++) {
            budget.paid();
        }
        for (int i = 0; i < 20 && budget.nanos() > 0; i++) {
            budget.wasInVain();
        }
        assertThat(budget.nanos()).isZero();
    }
}
