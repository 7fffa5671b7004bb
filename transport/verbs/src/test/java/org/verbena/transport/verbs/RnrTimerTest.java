package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@Tag("no-stub")
class RnrTimerTest {
    @ParameterizedTest
    @CsvSource({"10, 1", "11, 2", "20, 2", "640, 12", "641, 13", "491520, 31", "491521, 0", "655360, 0"})
    void roundsUpToWhatTheDeviceKnows(int micros, int code) {
        assertThat(RnrTimer.code(micros)).isEqualTo(code);
    }
}
