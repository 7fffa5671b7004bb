package org.verbena.it.lab;

import org.junit.jupiter.api.Tag;
import org.verbena.grpc.NativeGrpcSuite;

/** gRPC's native transport on verbs over soft RoCE, in the full run. */
@Tag("lab")
@Tag("lab-full")
class NativeGrpcOnRxeTest extends NativeGrpcSuite {
    @Override
    protected String provider() {
        return "verbs";
    }

    @Override
    protected String host() {
        return LabDevice.RXE.address();
    }

    @Override
    protected int largestBytes() {
        return 16 << 20;
    }

    @Override
    protected int manyChannels() {
        return 10;
    }

    /** Each of them takes the guest some milliseconds. */
    @Override
    protected int callsAtOnce() {
        return 100;
    }
}
