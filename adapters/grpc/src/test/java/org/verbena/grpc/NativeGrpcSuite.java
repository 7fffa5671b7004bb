package org.verbena.grpc;

import io.grpc.ManagedChannelBuilder;
import io.grpc.ServerBuilder;
import java.net.InetSocketAddress;
import org.junit.jupiter.api.Test;
import org.verbena.api.RdmaEventLoopGroup;

/** The gRPC suite on the native transport. A subclass names provider and address. */
public abstract class NativeGrpcSuite extends GrpcSuite {
    @Override
    protected ServerBuilder<?> newServer(InetSocketAddress address, RdmaEventLoopGroup loops) {
        return VerbenaGrpc.nativeServer(address, loops);
    }

    @Override
    protected ManagedChannelBuilder<?> newChannel(int port, RdmaEventLoopGroup loops) {
        return VerbenaGrpc.nativeChannel(host(), port, loops).http2Fallback(false);
    }

    /** There is none: {@link NativeBuildersTest} has how it is refused. */
    @Test
    @Override
    protected void tlsAuthenticatesBothEnds() {}
}
