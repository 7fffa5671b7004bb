package org.verbena.it.lab;

import io.netty.util.ResourceLeakDetector;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Tag;
import org.verbena.api.TrafficSuite;

/** Random traffic with closes, cancels, slow readers and a killed peer, on verbs. Smaller messages than elsewhere: the guest has little memory, and is slow. */
class TrafficTest {

    private abstract static class OnDevice extends TrafficSuite {
        private final LabDevice device;

        OnDevice(LabDevice device) {
            this.device = device;
            // Recording every access to every buffer is too slow for the guest.
            ResourceLeakDetector.setLevel(ResourceLeakDetector.Level.SIMPLE);
        }

        @Override
        protected String provider() {
            return "verbs";
        }

        @Override
        protected String host() {
            return device.address();
        }

        @Override
        protected int largestBytes() {
            return 4 << 20;
        }

        @Override
        protected int kills() {
            return 1;
        }
    }

    @Tag("lab")
    @Nested
    class OnRxe extends OnDevice {
        OnRxe() {
            super(LabDevice.RXE);
        }
    }

    @Tag("lab")
    @Nested
    class OnSiw extends OnDevice {
        OnSiw() {
            super(LabDevice.SIW);
        }

        /** Queues that are small enough for none to begin at the offset that siw's library takes for a failure (docs/errors.md). */
        @Override
        protected int depth() {
            return 16;
        }
    }
}
