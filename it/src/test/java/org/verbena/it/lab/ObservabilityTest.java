package org.verbena.it.lab;

import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Tag;
import org.verbena.api.CopiesSuite;
import org.verbena.api.ObservabilitySuite;

/**
 * What channels on verbs tell about themselves, and that they copy no messages, which every day soft RoCE shows: soft
 * and shared memory copy.
 */
@Tag("lab")
@Tag("lab-long")
class ObservabilityTest {

    @Nested
    @Tag("lab-full")
    class OnRxe extends ObservabilitySuite {
        @Override
        protected String provider() {
            return "verbs";
        }

        @Override
        protected String host() {
            return LabDevice.RXE.address();
        }
    }

    @Nested
    @Tag("lab-full")
    class OnSiw extends ObservabilitySuite {
        @Override
        protected String provider() {
            return "verbs";
        }

        @Override
        protected String host() {
            return LabDevice.SIW.address();
        }

        /** siw flushes the read when the peer's Terminate comes, and does not say why. */
        @Override
        protected String refusalStatus() {
            return null;
        }
    }

    @Nested
    class CopiesOnRxe extends CopiesSuite {
        @Override
        protected String provider() {
            return "verbs";
        }

        @Override
        protected String host() {
            return LabDevice.RXE.address();
        }
    }

    @Nested
    @Tag("lab-full")
    class CopiesOnSiw extends CopiesSuite {
        @Override
        protected String provider() {
            return "verbs";
        }

        @Override
        protected String host() {
            return LabDevice.SIW.address();
        }
    }
}
