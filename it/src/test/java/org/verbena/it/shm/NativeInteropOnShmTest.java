package org.verbena.it.shm;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.runner.JUnitCore;
import org.junit.runner.Result;
import org.junit.runner.RunWith;
import org.junit.runners.JUnit4;
import org.verbena.grpc.NativeInteropSuite;

/** gRPC's own interoperability suite on the native transport, in shared memory. It is written for JUnit 4. */
@Tag("full")
@Timeout(200)
class NativeInteropOnShmTest {
    private static final int MIN_TESTS = 30;

    @Test
    void passes() {
        Result result = new JUnitCore().run(OnShm.class);
        assertThat(result.getFailures()).isEmpty();
        assertThat(result.getRunCount()).isGreaterThanOrEqualTo(MIN_TESTS);
    }

    /** In shared memory. */
    @RunWith(JUnit4.class)
    public static class OnShm extends NativeInteropSuite {
        @Override
        protected String provider() {
            return "shm";
        }
    }
}
