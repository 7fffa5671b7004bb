package org.verbena.grpc;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.runner.JUnitCore;
import org.junit.runner.Result;
import org.junit.runner.RunWith;
import org.junit.runners.JUnit4;

/**
 * gRPC's interoperability suite on the soft provider, with TLS and certificates on both ends. For the full run: every
 * day the suite runs in the clear, and {@link GrpcSuite} has TLS.
 */
@Tag("full")
class InteropTlsTest {
    private static final int MIN_TESTS = 30;

    @Test
    void passes() {
        Result result = new JUnitCore().run(WithTls.class);
        assertThat(result.getFailures()).isEmpty();
        assertThat(result.getRunCount()).isGreaterThanOrEqualTo(MIN_TESTS);
    }

    /** Only for JUnit 4: its name has no Test. */
    @RunWith(JUnit4.class)
    public static class WithTls extends InteropSuite {
        @Override
        protected String provider() {
            return "soft";
        }

        @Override
        protected boolean tls() {
            return true;
        }
    }
}
