package org.verbena.it.lab;

import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Tag;
import org.verbena.api.StoppedPeerSuite;

/** The suite on both devices; each test starts a JVM, which takes a guest a while. */
@Tag("lab")
@Tag("lab-full")
class StoppedPeerTest {
    @Nested
    class OnRxe extends StoppedPeerSuite {
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
    class OnSiw extends StoppedPeerSuite {
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
