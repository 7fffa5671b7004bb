package org.verbena.it.lab;

import org.junit.jupiter.api.Tag;
import org.verbena.grpc.GrpcSuite;

/** gRPC on verbs over soft iWARP. */
@Tag("lab")
class GrpcOnSiwTest extends GrpcSuite {
    @Override
    protected String provider() {
        return "verbs";
    }

    @Override
    protected String host() {
        return LabDevice.SIW.address();
    }

    @Override
    protected int manyChannels() {
        return 10;
    }
}
