package org.verbena.grpc;

import static org.assertj.core.api.Assertions.assertThat;

import io.grpc.CallOptions;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import io.grpc.Server;
import io.grpc.ServerServiceDefinition;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.ServerCalls;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.transport.spi.Patience;

/** Beside grpc-netty-shaded, which a library may bring: one service over RDMA, and over TCP by the shaded builders. */
@Timeout(120)
class ShadedTest {
    private static final String HOST = "127.0.0.1";
    private static final MethodDescriptor<byte[], byte[]> ECHO =
            Bytes.method(MethodDescriptor.MethodType.UNARY, "echo");
    private static final ServerServiceDefinition SERVICE = ServerServiceDefinition.builder("verbena.Test")
            .addMethod(ECHO, ServerCalls.asyncUnaryCall((request, response) -> {
                response.onNext(request);
                response.onCompleted();
            }))
            .build();

    @Test
    void serveOneServiceInOneProcess() throws Exception {
        InetSocketAddress any = new InetSocketAddress(HOST, 0);
        try (RdmaEventLoopGroup group = new RdmaEventLoopGroup("soft", 1)) {
            Server rdma =
                    VerbenaGrpc.server(any, group).addService(SERVICE).build().start();
            Server tcp = NettyServerBuilder.forAddress(any)
                    .addService(SERVICE)
                    .build()
                    .start();
            ManagedChannel overRdma = VerbenaGrpc.channel(HOST, rdma.getPort(), group)
                    .usePlaintext()
                    .build();
            ManagedChannel overTcp = NettyChannelBuilder.forAddress(HOST, tcp.getPort())
                    .usePlaintext()
                    .build();
            try {
                for (ManagedChannel channel : List.of(overRdma, overTcp, overRdma)) {
                    assertThat(ClientCalls.blockingUnaryCall(channel, ECHO, CallOptions.DEFAULT, new byte[] {7}))
                            .containsExactly(7);
                }
            } finally {
                for (ManagedChannel channel : List.of(overRdma, overTcp)) {
                    channel.shutdownNow().awaitTermination(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS);
                }
                for (Server server : List.of(rdma, tcp)) {
                    server.shutdownNow().awaitTermination(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS);
                }
            }
        }
    }
}
