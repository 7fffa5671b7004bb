package org.verbena.api.internal.client;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.verbena.api.client.RequestOptions;

class CallPlanTest {
    private static final CallPlan HEDGED = new CallPlan(true, 1000, 0, false, 0);

    @Test
    void onlyWhatMayBeHandledTwiceIsHedged() {
        assertThat(HEDGED.hedges()).isTrue();
        assertThat(HEDGED.with(RequestOptions.DEFAULTS).hedges()).isTrue();
        assertThat(HEDGED.with(RequestOptions.DEFAULTS.withIdempotent(false)).hedges())
                .isFalse();
        RequestOptions taken =
                RequestOptions.DEFAULTS.withHedgeAfter(Duration.ofMillis(1)).withIdempotent(false);
        assertThat(CallPlan.ONCE.with(taken).hedges()).isFalse();
        assertThat(CallPlan.ONCE.with(taken)).isEqualTo(new CallPlan(false, 1_000_000, 0, false, 0));
    }

    @Test
    void aRequestMayUseTheHedgeOfItsClient() {
        CallPlan careful = new CallPlan(false, 1000, 0, false, 0);
        assertThat(careful.hedges()).isFalse();
        assertThat(careful.with(RequestOptions.DEFAULTS.withIdempotent(true))).isEqualTo(HEDGED);
    }

    @Test
    void whatHasAKeyOrMayBeSentAgainIsNotPlain() {
        assertThat(CallPlan.ONCE.isPlain()).isTrue();
        assertThat(CallPlan.ONCE.with(RequestOptions.DEFAULTS.withKey("a")).isPlain())
                .isFalse();
        assertThat(CallPlan.ONCE
                        .with(RequestOptions.DEFAULTS.withIdempotent(true))
                        .isPlain())
                .isFalse();
        assertThat(new CallPlan(false, CallPlan.NO_HEDGE, 1, false, 0).isPlain())
                .isFalse();
    }
}
