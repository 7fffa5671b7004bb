package org.verbena.transport.soft;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.soft.uring.SocketIo;

/** What carries the bytes is what was asked for, and what the provider says. */
@Timeout(60)
class SoftIoChoiceTest {
    private static final String CAUSE = SocketIo.unavailabilityCause();

    @Test
    void automaticIsTheRingWhereItWorks() {
        SoftOptions options = SoftOptions.DEFAULTS.with(o -> o.io = SoftOptions.Io.AUTO);
        SoftProvider provider = new SoftProvider(options);
        assertThat(provider.unavailabilityCause()).isNull();
        assertThat(provider.description()).endsWith(CAUSE == null ? "on io_uring" : "on NIO (io_uring: " + CAUSE + ")");
        try (SoftFixture fixture = new SoftFixture(options)) {
            assertThat(fixture.ring() != null).isEqualTo(CAUSE == null);
        }
    }

    @Test
    void nioIsTheDefault() {
        SoftOptions options = SoftOptions.DEFAULTS;
        assertThat(new SoftProvider(options).description()).endsWith("on NIO");
        try (SoftFixture fixture = new SoftFixture(options)) {
            assertThat(fixture.ring()).isNull();
        }
    }

    @Test
    void aRingThatIsForcedDoesNotFallBack() {
        SoftOptions options = SoftOptions.DEFAULTS.with(o -> o.io = SoftOptions.Io.IO_URING);
        Throwable unavailable = new SoftProvider(options).unavailabilityCause();
        if (CAUSE == null) {
            assertThat(unavailable).isNull();
            try (SoftFixture fixture = new SoftFixture(options)) {
                assertThat(fixture.ring()).isNotNull();
            }
        } else {
            assertThat(unavailable).hasMessageContaining(CAUSE);
        }
    }
}
