package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.listeners.SummaryGeneratingListener;
import org.junit.platform.launcher.listeners.TestExecutionSummary;
import org.verbena.flight.FlightSuite;
import org.verbena.it.guest.ArrowClasses;
import org.verbena.it.guest.Jupiter;

/** Arrow Flight on verbs over soft RoCE. */
@Tag("lab")
@Tag("lab-full")
class FlightOnRxeTest {
    private static final int TESTS = 3;

    @Test
    @Timeout(600)
    void passesTheSuite() throws Exception {
        try (ArrowClasses classes = new ArrowClasses()) {
            classes.run(Run.class.getName());
        }
    }

    /** Runs the suite with Jupiter; made where Arrow finds its protobuf. */
    public static final class Run implements Runnable {
        @Override
        public void run() {
            SummaryGeneratingListener listener = new SummaryGeneratingListener();
            Jupiter.launcher()
                    .execute(
                            LauncherDiscoveryRequestBuilder.request()
                                    .selectors(DiscoverySelectors.selectClass(Suite.class))
                                    .build(),
                            listener);
            TestExecutionSummary summary = listener.getSummary();
            for (TestExecutionSummary.Failure failure : summary.getFailures()) {
                throw new AssertionError(failure.getTestIdentifier().getDisplayName(), failure.getException());
            }
            assertThat(summary.getTestsSucceededCount()).isEqualTo(TESTS);
        }
    }

    /** Without a tag, so that the lab does not run it on its own class path. */
    static class Suite extends FlightSuite {
        @Override
        protected String provider() {
            return "verbs";
        }

        @Override
        protected String host() {
            return LabDevice.RXE.address();
        }

        @Override
        protected int batches() {
            return 3;
        }
    }
}
