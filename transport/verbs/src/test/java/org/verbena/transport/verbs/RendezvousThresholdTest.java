package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@Tag("no-stub")
class RendezvousThresholdTest {
    /** The rows of 100 Gb/s are in docs/adapters.md. */
    @ParameterizedTest
    @CsvSource({
        // Gb/s, commands, registrations, bytes of the peer's receives, threshold
        "100, 0, 0, 16384, 21701",
        "100, 2, 0, 16384, 398172",
        "100, 2, 1, 16384, 1353785",
        "100, 4, 1, 16384, 2633785",
        "100, 4, 2, 16384, 4194304",
        "25, 0, 0, 16384, 23616",
        "25, 2, 0, 16384, 535616",
        "400, 0, 0, 16384, 20314",
        "400, 2, 0, 16384, 298575",
        "100, 0, 0, 65536, 65536",
        "0, 2, 1, 16384, 1048576",
        "0, 2, 1, 2097152, 2097152",
    })
    void isWhereBothWaysCostTheSame(
            double gigabits, int commands, int registrations, int peerReceiveBytes, int threshold) {
        assertThat(RendezvousThreshold.bytes(gigabits, commands, registrations, peerReceiveBytes))
                .isEqualTo(threshold);
    }

    @ParameterizedTest
    @CsvSource({"10", "25", "100", "200", "400", "800"})
    void growsWithWhatAKeyCostsAndStaysInItsBounds(double gigabits) {
        int before = 0;
        for (int commands = 0; commands <= 64; commands++) {
            int bytes = RendezvousThreshold.bytes(gigabits, commands, 0, 4096);
            assertThat(bytes).isBetween(Math.max(before, 4096), RendezvousThreshold.MAX_BYTES);
            before = bytes;
        }
        assertThat(before).isEqualTo(RendezvousThreshold.MAX_BYTES);
    }
}
