package org.verbena.grpc;

import static org.assertj.core.api.Assertions.assertThat;

import io.grpc.CallOptions;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import io.grpc.Server;
import io.grpc.ServerServiceDefinition;
import io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.NettyServerBuilder;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.ServerCalls;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.api.ProviderStatistics;
import org.verbena.api.RdmaChannelOption;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.transport.spi.Patience;

/** One gRPC server, one port: gRPC's usual client and one over RDMA, at once. */
@Timeout(120)
class OnePortGrpcTest {
    private static final MethodDescriptor<byte[], byte[]> ECHO =
            Bytes.method(MethodDescriptor.MethodType.UNARY, "echo");
    private static final int CALLS = 200;

    private final List<ManagedChannel> channels = new ArrayList<>();
    private RdmaEventLoopGroup group;
    private Server server;

    @BeforeEach
    void openGroup() {
        group = new RdmaEventLoopGroup("soft", 2);
    }

    @AfterEach
    void endAll() throws InterruptedException {
        for (ManagedChannel channel : channels) {
            channel.shutdownNow();
            assertThat(channel.awaitTermination(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                    .isTrue();
        }
        server.shutdownNow();
        assertThat(server.awaitTermination(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                .isTrue();
        group.close();
    }

    private ManagedChannel open(NettyChannelBuilder builder, boolean tls) {
        if (tls) {
            builder.sslContext(Tls.client()).overrideAuthority(Tls.NAME);
        } else {
            builder.usePlaintext();
        }
        ManagedChannel channel = builder.build();
        channels.add(channel);
        return channel;
    }

    @ParameterizedTest(name = "TLS {0}")
    @ValueSource(booleans = {false, true})
    void servesBothKindsAtOnce(boolean tls) throws Exception {
        NettyServerBuilder builder = VerbenaGrpc.server(new InetSocketAddress("127.0.0.1", 0), group)
                .withOption(RdmaChannelOption.PLAIN_TCP, true)
                .addService(ServerServiceDefinition.builder("verbena.Test")
                        .addMethod(ECHO, ServerCalls.asyncUnaryCall((request, response) -> {
                            response.onNext(request);
                            response.onCompleted();
                        }))
                        .build());
        if (tls) {
            builder.sslContext(Tls.server());
        }
        server = builder.build().start();
        ProviderStatistics before = group.providerStatistics();
        ManagedChannel usual = open(NettyChannelBuilder.forAddress("127.0.0.1", server.getPort()), tls);
        ManagedChannel rdma = open(VerbenaGrpc.channel("127.0.0.1", server.getPort(), group), tls);
        List<Future<byte[]>> replies = new ArrayList<>();
        for (int i = 0; i < CALLS; i++) {
            byte[] message = message(i);
            for (ManagedChannel channel : channels) {
                replies.add(ClientCalls.futureUnaryCall(channel.newCall(ECHO, CallOptions.DEFAULT), message));
            }
        }
        for (int i = 0; i < replies.size(); i++) {
            assertThat(replies.get(i).get(60, TimeUnit.SECONDS)).isEqualTo(message(i / 2));
        }
        assertThat(List.of(usual, rdma)).doesNotHaveDuplicates();
        ProviderStatistics after = group.providerStatistics();
        assertThat(after.plainConnections() - before.plainConnections()).isEqualTo(1);
        assertThat(after.connections() - before.connections())
                .as("both ends of one RDMA connection")
                .isEqualTo(2);
    }

    private static byte[] message(int i) {
        byte[] bytes = new byte[1 + i * 37 % 5000];
        Arrays.fill(bytes, (byte) i);
        return bytes;
    }
}
