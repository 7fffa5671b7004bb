package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.runner.JUnitCore;
import org.junit.runner.Result;
import org.junit.runner.RunWith;
import org.junit.runners.JUnit4;
import org.verbena.grpc.InteropSuite;

/**
 * gRPC's own interoperability suite on verbs, over both devices and with TLS: every day on soft. It is written for
 * JUnit 4, and so one test here.
 */
@Tag("lab")
@Tag("lab-long")
@Timeout(400)
class GrpcInteropTest {
    private static final int MIN_TESTS = 30;

    @Test
    @Tag("lab-full")
    void passesOnSiw() {
        run(OnSiw.class);
    }

    @Test
    @Tag("lab-full")
    void passesOnRxe() {
        run(OnRxe.class);
    }

    @Test
    @Tag("lab-full")
    void passesOnSiwWithTls() {
        run(WithTls.class);
    }

    private static void run(Class<? extends InteropSuite> suite) {
        Result result = new JUnitCore().run(suite);
        assertThat(result.getFailures()).isEmpty();
        assertThat(result.getRunCount()).isGreaterThanOrEqualTo(MIN_TESTS);
    }

    /** In the clear, over soft RoCE. */
    @RunWith(JUnit4.class)
    public static class OnRxe extends InteropSuite {
        @Override
        protected String provider() {
            return "verbs";
        }

        @Override
        protected String host() {
            return LabDevice.RXE.address();
        }

        @Override
        protected boolean tls() {
            return false;
        }

        /**
         * gRPC's own statistics are for the host's runs: these checks take for granted that a call starts within its
         * second.
         */
        @Override
        protected boolean metricsExpected() {
            return false;
        }
    }

    /** The same over soft iWARP. */
    @RunWith(JUnit4.class)
    public static class OnSiw extends OnRxe {
        @Override
        protected String host() {
            return LabDevice.SIW.address();
        }
    }

    /** With TLS and certificates on both ends. */
    @RunWith(JUnit4.class)
    public static class WithTls extends OnSiw {
        @Override
        protected boolean tls() {
            return true;
        }
    }
}
