package org.verbena.it.lab;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.verbena.grpc.GrpcSuite;

/** gRPC on verbs over soft RoCE. */
@Tag("lab")
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

    /** The streams have TLS on this device every day, and gRPC has it on soft. */
    @Test
    @Tag("lab-full")
    @Override
    protected void tlsAuthenticatesBothEnds() throws Exception {
        super.tlsAuthenticatesBothEnds();
    }

    /** The windows of HTTP/2 are above the device; soft has it every day. */
    @Test
    @Tag("lab-full")
    @Override
    protected void aClientThatDoesNotAskIsNotFlooded() throws Exception {
        super.aClientThatDoesNotAskIsNotFlooded();
    }

    /** The streams have many channels and many writes at once every day. */
    @Test
    @Tag("lab-full")
    @Override
    protected void manyCallsAreUnderWayAtOnce() throws Exception {
        super.manyCallsAreUnderWayAtOnce();
    }
}
