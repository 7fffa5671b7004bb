package org.verbena.it.lab;

import org.junit.jupiter.api.Tag;
import org.verbena.grpc.GrpcSuite;

/** gRPC on verbs over soft RoCE: on the streams that soft iWARP has every day, and every day on soft. */
@Tag("lab")
@Tag("lab-full")
class GrpcOnRxeTest extends GrpcSuite {
    @Override
    protected String provider() {
        return "verbs";
    }

    @Override
    protected String host() {
        return LabDevice.RXE.address();
    }

    /** As much as in a thousand frames of HTTP/2; a longer one takes the guest half a minute. */
    @Override
    protected int largestBytes() {
        return 16 << 20;
    }

    @Override
    protected int manyChannels() {
        return 10;
    }

    /** Each of them takes the guest 30 ms. */
    @Override
    protected int callsAtOnce() {
        return 100;
    }
}
