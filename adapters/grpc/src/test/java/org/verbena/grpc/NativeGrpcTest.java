package org.verbena.grpc;

/** The gRPC suite on the native transport and the soft provider. */
class NativeGrpcTest extends NativeGrpcSuite {
    @Override
    protected String provider() {
        return "soft";
    }
}
