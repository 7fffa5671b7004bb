package org.verbena.it.lab;

import io.grpc.Server;
import io.grpc.ServerInterceptors;
import io.grpc.netty.NettyServerBuilder;
import io.grpc.testing.integration.TestServiceImpl;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import org.verbena.api.RdmaChannelOption;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.grpc.VerbenaGrpc;

/** The server of gRPC's interoperability suite, in a process of its own, for clients with and without RDMA. */
public final class GrpcInteropServer {
    private static final int MAX_MESSAGE_BYTES = 16 << 20;

    private GrpcInteropServer() {}

    /**
     * Serves until it is killed.
     *
     * @param arguments the port, and the addresses to listen at
     */
    public static void main(String[] arguments) throws Exception {
        int port = Integer.parseInt(arguments[0]);
        ScheduledExecutorService executor = Executors.newScheduledThreadPool(2);
        NettyServerBuilder builder =
                VerbenaGrpc.server(new InetSocketAddress(arguments[1], port), new RdmaEventLoopGroup("all", 2));
        for (int i = 2; i < arguments.length; i++) {
            builder.addListenAddress(new InetSocketAddress(arguments[i], port));
        }
        Server server = builder.withOption(RdmaChannelOption.PLAIN_TCP, true)
                .maxInboundMessageSize(MAX_MESSAGE_BYTES)
                .addService(ServerInterceptors.intercept(new TestServiceImpl(executor), TestServiceImpl.interceptors()))
                .build()
                .start();
        System.out.println("listening");
        server.awaitTermination();
    }
}
