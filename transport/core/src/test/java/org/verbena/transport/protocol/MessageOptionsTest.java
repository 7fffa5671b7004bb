package org.verbena.transport.protocol;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.verbena.transport.Framing;

class MessageOptionsTest {
    @ParameterizedTest
    @CsvSource({
        "64, 64, 128",
        "16384, 64, 128",
        "32768, 32, 128",
        "40000, 26, 104",
        "64512, 16, 65",
        "65536, 16, 64",
        "1048576, 16, 64"
    })
    void aDefaultDepthBeginsWithOneMebibyteAndEndsWithFourButIsNeitherSmallNorLarge(
            int bufferBytes, int first, int greatest) {
        assertThat(MessageOptions.DEFAULTS.firstReceiveDepth(bufferBytes)).isEqualTo(first);
        assertThat(MessageOptions.DEFAULTS.receiveDepth(bufferBytes)).isEqualTo(greatest);
    }

    @Test
    void withoutGrantsAllReceivesArePostedAtOnce() {
        MessageOptions raw = MessageOptions.DEFAULTS.withFraming(Framing.RAW);
        assertThat(raw.firstReceiveDepth(64512)).isEqualTo(65);
    }

    @Test
    void aDepthThatWasAskedForIsKept() {
        MessageOptions options = MessageOptions.DEFAULTS.withReceives(1000, 64 << 10);
        assertThat(options.firstReceiveDepth(64 << 10)).isEqualTo(1000);
        assertThat(options.receiveDepth(64 << 10)).isEqualTo(1000);
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
