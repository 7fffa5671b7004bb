package org.verbena.api.internal.request;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class StreamsTest {
    @Test
    @SuppressWarnings("NullAway") // it only counts
    void whatStreamsHoldHasABound() {
        Streams streams = new Streams(null, SendLimit.Bounds.DEFAULTS);
        assertThat(streams.tryHold(Streams.MAX_BYTES - 1)).isTrue();
        assertThat(streams.tryHold(2)).isFalse();
        assertThat(streams.tryHold(1)).isTrue();
        assertThat(streams.tryHold(1)).isFalse();
        streams.release(1);
        assertThat(streams.tryHold(1)).isTrue();
    }
}
