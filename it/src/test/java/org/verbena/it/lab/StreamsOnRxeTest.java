package org.verbena.it.lab;

import io.netty.util.ResourceLeakDetector;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.verbena.api.RdmaStreamSuite;

/** Streams on verbs over soft RoCE. */
@Tag("lab")
class StreamsOnRxeTest extends RdmaStreamSuite {
    {
        // Recording every access to every buffer is too slow for the guest.
        ResourceLeakDetector.setLevel(ResourceLeakDetector.Level.SIMPLE);
    }

    @Override
    protected String provider() {
        return "verbs";
    }

    @Override
    protected String host() {
        return LabDevice.RXE.address();
    }

    @Override
    protected int manyChannels() {
        return 20;
    }

    @Override
    protected int manyBytes() {
        return 2 << 20;
    }

    /** Every day a killed process is met on rxe by {@link ConnectionManagerTest} and {@link TrafficTest}. */
    @Test
    @Tag("lab-full")
    @Override
    protected void aPeerThatIsKilledEndsTheChannel() throws Exception {
        super.aPeerThatIsKilledEndsTheChannel();
    }
}
