package org.verbena.it.lab;

/** gRPC's native transport on verbs over soft iWARP, in the full run. */
class NativeGrpcOnSiwTest extends NativeGrpcOnRxeTest {
    @Override
    protected String host() {
        return LabDevice.SIW.address();
    }
}
