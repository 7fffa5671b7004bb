package org.verbena.cm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatNoException;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ConnectionParametersTest {
    @Test
    void takesValuesAtTheirBoundsAndRefusesOnePast() {
        ConnectionParameters base = ConnectionParameters.DEFAULT;
        assertThatNoException().isThrownBy(() -> base.withRetries(7, 7));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> base.withRetries(8, 7))
                .withMessage("retryCount is 8, but must be 0 to 7");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> base.withRetries(7, 8))
                .withMessage("rnrRetryCount is 8, but must be 0 to 7");
        assertThatNoException().isThrownBy(() -> base.withReads(255, 255));
        assertThatIllegalArgumentException().isThrownBy(() -> base.withReads(256, 0));
        assertThatIllegalArgumentException().isThrownBy(() -> base.withReads(0, -1));
        assertThatNoException().isThrownBy(() -> base.withPrivateData(new byte[255]));
        assertThatIllegalArgumentException().isThrownBy(() -> base.withPrivateData(new byte[256]));
        assertThatNoException().isThrownBy(() -> base.withQueuePair(0xffffff, true));
        assertThatIllegalArgumentException().isThrownBy(() -> base.withQueuePair(0x1000000, true));
    }

    @Test
    void copiesPrivateDataBothWays() {
        byte[] bytes = {1, 2, 3};
        ConnectionParameters parameters = ConnectionParameters.DEFAULT.withPrivateData(bytes);
        bytes[0] = 9;
        parameters.privateData()[1] = 9;
        assertThat(parameters.privateData()).containsExactly(1, 2, 3);
        assertThat(parameters).isEqualTo(ConnectionParameters.DEFAULT.withPrivateData(new byte[] {1, 2, 3}));
    }

    @ParameterizedTest
    @CsvSource({
        "CONNECT, false, false, false, 56",
        "CONNECT, false, false, true, 92",
        "CONNECT, false, true, false, 180",
        "CONNECT, false, true, true, 216",
        "ACCEPT, false, false, false, 196",
        "ACCEPT, false, true, false, 136",
        "REJECT, false, false, false, 148",
        "REJECT, false, true, false, 136",
        "CONNECT, true, false, false, 251",
        "ACCEPT, true, false, false, 251",
        "REJECT, true, false, false, 251",
    })
    void refusesPrivateDataOverTheLimitWithItsValue(
            PrivateDataLimit limit, boolean iwarp, boolean datagram, boolean ibAddress, int bytes) {
        assertThatNoException().isThrownBy(() -> limit.check(bytes, iwarp, datagram, ibAddress));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> limit.check(bytes + 1, iwarp, datagram, ibAddress))
                .withMessageContaining("at most " + bytes + " bytes")
                .withMessageContaining("not " + (bytes + 1));
    }
}
