package org.verbena.it.lab;

import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.verbena.api.CopiesSuite;
import org.verbena.api.ObservabilitySuite;

/** What channels on verbs tell about themselves, and that they copy no messages. */
@Tag("lab")
@Tag("lab-long")
class ObservabilityTest {

    @Nested
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
    class CopiesOnSiw extends CopiesSuite {
        @Override
        protected String provider() {
            return "verbs";
        }

        @Override
        protected String host() {
            return LabDevice.SIW.address();
        }

        /** It takes the same way on both devices, and a JVM of its own. */
        @Test
        @Tag("lab-full")
        @Override
        protected void aRendezvousTakesNoKeyOfItsOwnWherePeersAreTrusted() throws Exception {
            super.aRendezvousTakesNoKeyOfItsOwnWherePeersAreTrusted();
        }
    }
}
