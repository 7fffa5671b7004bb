package org.verbena.it.lab;

import io.netty.util.ResourceLeakDetector;
import org.junit.jupiter.api.Tag;
import org.verbena.api.RdmaStreamSuite;

/** Streams on verbs over soft RoCE, where channels run every day. */
@Tag("lab")
@Tag("lab-full")
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
}
