package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@Tag("no-stub")
class AckTimeoutTest {
    @ParameterizedTest
    @CsvSource({"-1, 16", "5, 1", "8, 1", "9, 2", "67108, 14", "67109, 15", "268435, 16", "17179869, 22"})
    void roundsUpToWhatTheDeviceKnows(int micros, int exponent) {
        assertThat(AckTimeout.exponent(micros, AckTimeout.ROCE_EXPONENT)).isEqualTo(exponent);
    }
}
