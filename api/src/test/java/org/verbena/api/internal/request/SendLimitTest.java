package org.verbena.api.internal.request;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.verbena.transport.SendLimitException;

class SendLimitTest {
    @Test
    void hasRoomUpToEachBoundAndNoFurther() {
        SendLimit limit = new SendLimit(new SendLimit.Bounds(3, 100));
        assertThat(limit.tryTake(50)).isTrue();
        assertThat(limit.tryTake(50)).isTrue();
        assertThat(limit.tryTake(1)).as("a byte more").isFalse();
        SendLimitException refusal = limit.refusal("send", "peer", 1);
        assertThat(refusal.pendingMessages()).isEqualTo(2);
        assertThat(refusal.pendingBytes()).isEqualTo(100);
        assertThat(limit.tryTake(0)).isTrue();
        assertThat(limit.tryTake(0)).as("a message more").isFalse();
        limit.giveBack(50);
        assertThat(limit.tryTake(50)).isTrue();
    }

    @Test
    void aMessageThatWaitsForNoOtherMayBeLonger() {
        SendLimit limit = new SendLimit(new SendLimit.Bounds(3, 100));
        assertThat(limit.tryTake(Integer.MAX_VALUE)).isTrue();
        assertThat(limit.tryTake(0)).isFalse();
        limit.giveBack(Integer.MAX_VALUE);
        assertThat(limit.tryTake(100)).isTrue();
    }

    @Test
    void whatIsNeverRefusedCounts() {
        SendLimit limit = new SendLimit(new SendLimit.Bounds(2, 100));
        for (int i = 0; i < 5; i++) {
            limit.take(Integer.MAX_VALUE);
        }
        assertThat(limit.tryTake(0)).isFalse();
        assertThat(limit.refusal("send", "peer", 0).pendingMessages()).isEqualTo(5);
        for (int i = 0; i < 5; i++) {
            limit.giveBack(Integer.MAX_VALUE);
        }
        assertThat(limit.tryTake(1)).isTrue();
    }
}
