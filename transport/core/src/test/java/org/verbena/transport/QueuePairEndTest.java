package org.verbena.transport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.verbena.transport.spi.EndpointOptions;

class QueuePairEndTest {
    private static final QueuePairEnd END = new QueuePairEnd(
            0xabcdef, 0x123456, 0xffff, 0xfe80_0000_0000_0000L, 0x0000_ffff_0a4d_0001L, 1024, 16, new byte[] {1, 2, 3});

    @Test
    void readsWhatItWrites() {
        byte[] bytes = END.toBytes();
        assertThat(bytes).hasSize(QueuePairEnd.LEAST_BYTES + 3).startsWith('V', 'b', 'Q', 'P', 1, 0, 0, 16);
        assertThat(QueuePairEnd.privateDataBytes(bytes)).isEqualTo(3);
        assertThat(QueuePairEnd.ofBytes(bytes)).isEqualTo(END).hasSameHashCodeAs(END);
        assertThat(QueuePairEnd.ofBytes(bytes).privateData()).containsExactly(1, 2, 3);
        byte[] max = new byte[EndpointOptions.GREATEST_PRIVATE_DATA_BYTES];
        QueuePairEnd longest = new QueuePairEnd(0, 0, 0, 0, 0, 4096, 0, max);
        assertThat(longest.toBytes()).hasSize(QueuePairEnd.MOST_BYTES);
        assertThat(QueuePairEnd.ofBytes(longest.toBytes())).isEqualTo(longest);
    }

    @Test
    void refusesWhatIsOutOfRange() {
        assertThatThrownBy(() -> new QueuePairEnd(1 << 24, 0, 0, 0, 0, 1024, 0, new byte[0]))
                .hasMessageContaining("queuePairNumber");
        assertThatThrownBy(() -> END.withPacketSequenceNumber(-1)).hasMessageContaining("packetSequenceNumber");
        assertThatThrownBy(() -> END.withMtuBytes(1500)).hasMessageContaining("mtuBytes 1500");
        assertThatThrownBy(() -> END.withMtuBytes(8192)).hasMessageContaining("mtuBytes 8192");
        assertThatThrownBy(() -> END.withMtuBytes(0)).hasMessageContaining("mtuBytes 0");
        assertThatThrownBy(() -> new QueuePairEnd(0, 0, 0, 0, 0, 1024, 0, new byte[513]))
                .hasMessageContaining("private data");
    }

    @Test
    void refusesOtherLengthsAndBeginnings() {
        byte[] bytes = END.toBytes();
        assertThatThrownBy(() -> QueuePairEnd.ofBytes(Arrays.copyOf(bytes, bytes.length - 1)))
                .isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> QueuePairEnd.ofBytes(Arrays.copyOf(bytes, bytes.length + 1)))
                .isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> QueuePairEnd.ofBytes(new byte[0])).isInstanceOf(IllegalArgumentException.class);
        bytes[4] = 2;
        assertThatThrownBy(() -> QueuePairEnd.ofBytes(bytes)).hasMessageContaining("version 1");
    }

    /** Whatever comes is an end or an IllegalArgumentException. */
    @Test
    void takesAnyBytes() {
        Random random = new Random(7);
        int ends = 0;
        for (int i = 0; i < 20_000; i++) {
            byte[] bytes = END.toBytes();
            for (int changes = random.nextInt(4); changes >= 0; changes--) {
                bytes[random.nextInt(bytes.length)] = (byte) random.nextInt();
            }
            try {
                assertThat(QueuePairEnd.ofBytes(bytes).privateData()).hasSize(3);
                ends++;
            } catch (IllegalArgumentException refused) {
                assertThat(refused.getMessage()).isNotEmpty();
            }
        }
        assertThat(ends).isBetween(1000, 19_000);
    }
}
