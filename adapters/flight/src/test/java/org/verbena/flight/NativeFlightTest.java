package org.verbena.flight;

import io.grpc.ManagedChannelBuilder;
import io.grpc.ServerBuilder;
import java.net.InetSocketAddress;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.grpc.VerbenaGrpc;

/** The suite on gRPC's native transport, on the soft provider. */
class NativeFlightTest extends FlightSuite {
    @Override
    protected String provider() {
        return "soft";
    }

    @Override
    protected ServerBuilder<?> newServer(InetSocketAddress address, RdmaEventLoopGroup loops) {
        return VerbenaGrpc.nativeServer(address, loops);
    }

    @Override
    protected ManagedChannelBuilder<?> newChannel(int port, RdmaEventLoopGroup loops) {
        return VerbenaGrpc.nativeChannel(host(), port, loops).http2Fallback(false);
    }

    /** Of more than 1 MiB each, so each is several frames. */
    @Override
    protected int batches() {
        return 4;
    }
}
