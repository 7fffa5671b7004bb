package org.verbena.it.lab;

import io.netty.util.ResourceLeakDetector;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Tag;
import org.verbena.api.TrafficSuite;

/**
 * Random traffic with closes, cancels, slow readers and a killed peer, on verbs. Smaller messages than elsewhere: the
 * guest has little memory, and is slow. Every day soft and shared memory have it, soft RoCE the random traffic of the
 * channel suite, and {@link ConnectionManagerTest} a killed process.
 */
@Tag("lab-long")
@Tag("lab-full")
class TrafficTest {

    private abstract static class OnDevice extends TrafficSuite {
        /** Several times what it takes until each kind of event was there. */
        static final int SECONDS = 8;

        static final int FULL_SECONDS = 60;

        private final LabDevice device;
        private final int seconds;

        OnDevice(LabDevice device, int seconds) {
            this.device = device;
            this.seconds = Integer.getInteger("verbena.traffic.seconds", seconds);
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
        protected int seconds() {
            return seconds;
        }

        @Override
        protected int largestBytes() {
            return 4 << 20;
        }

        @Override
        protected int kills() {
            return seconds > SECONDS ? 2 : 1;
        }
    }

    @Tag("lab")
    @Nested
    class OnRxe extends OnDevice {
        OnRxe() {
            super(LabDevice.RXE, SECONDS);
        }
    }

    @Tag("lab")
    @Nested
    class OnRxeForLong extends OnDevice {
        OnRxeForLong() {
            super(LabDevice.RXE, FULL_SECONDS);
        }
    }

    /**
     * Queues that are small enough for none to begin at the offset that siw's library takes for a failure
     * (docs/errors.md).
     */
    private abstract static class OnSiwDevice extends OnDevice {
        OnSiwDevice(int seconds) {
            super(LabDevice.SIW, seconds);
        }

        @Override
        protected int depth() {
            return 16;
        }
    }

    @Tag("lab")
    @Nested
    class OnSiw extends OnSiwDevice {
        OnSiw() {
            super(SECONDS);
        }
    }

    @Tag("lab")
    @Nested
    class OnSiwForLong extends OnSiwDevice {
        OnSiwForLong() {
            super(FULL_SECONDS);
        }
    }
}
