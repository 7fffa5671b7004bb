package org.verbena.transport.protocol;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class MessageOptionsTest {
    @ParameterizedTest
    @CsvSource({"64, 128", "16384, 128", "32768, 128", "40000, 104", "64512, 65", "65536, 64", "1048576, 64"})
    void aDefaultDepthTakesFourMebibytesButIsNeitherSmallNorLarge(int bufferBytes, int depth) {
        assertThat(MessageOptions.DEFAULTS.receiveDepth(bufferBytes)).isEqualTo(depth);
    }

    @Test
    void aDepthThatWasAskedForIsKept() {
        assertThat(MessageOptions.DEFAULTS.withReceives(1000, 64 << 10).receiveDepth(64 << 10))
                .isEqualTo(1000);
    }

    @Test
    void receivesAreDefaultsOrInRange() {
        assertThatThrownBy(() -> MessageOptions.DEFAULTS.withReceives(0, MessageOptions.DEVICE_DEFAULT))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("receiveDepth 0");
        assertThatThrownBy(() -> MessageOptions.DEFAULTS.withReceives(MessageOptions.DEVICE_DEFAULT, 63))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("receiveBufferBytes 63");
    }
}
