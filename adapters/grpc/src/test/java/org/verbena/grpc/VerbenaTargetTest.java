package org.verbena.grpc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.NameResolverRegistry;
import io.grpc.Server;
import io.grpc.ServerServiceDefinition;
import io.grpc.netty.NettyChannelBuilder;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.ServerCalls;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.transport.spi.Patience;

/** Targets that name several servers, with gRPC's load balancers, natively and over HTTP/2. */
@Timeout(120)
class VerbenaTargetTest {
    private static final MethodDescriptor<byte[], byte[]> ECHO = Bytes.method(MethodType.UNARY, "echo");

    private final List<Server> servers = new ArrayList<>();
    private final List<ManagedChannel> channels = new ArrayList<>();
    private RdmaEventLoopGroup group;

    @BeforeEach
    void startServers() throws Exception {
        group = new RdmaEventLoopGroup("soft", 2);
        for (int i = 0; i < 3; i++) {
            servers.add(VerbenaGrpc.nativeServer(new InetSocketAddress("127.0.0.1", 0), group)
                    .addService(ServerServiceDefinition.builder("verbena.Test")
                            .addMethod(ECHO, ServerCalls.asyncUnaryCall((request, response) -> {
                                response.onNext(request);
                                response.onCompleted();
                            }))
                            .build())
                    .build()
                    .start());
        }
    }

    @AfterEach
    void endAll() throws Exception {
        channels.forEach(ManagedChannel::shutdownNow);
        servers.forEach(Server::shutdownNow);
        for (ManagedChannel channel : channels) {
            assertThat(channel.awaitTermination(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                    .isTrue();
        }
        for (Server server : servers) {
            assertThat(server.awaitTermination(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                    .isTrue();
        }
        group.close();
    }

    private String target() {
        StringBuilder target = new StringBuilder("verbena:///");
        for (Server server : servers) {
            target.append(target.toString().endsWith("/") ? "" : ",")
                    .append("127.0.0.1:")
                    .append(server.getPort());
        }
        return target.toString();
    }

    private NativeChannelBuilder nativeChannel(String target) {
        return VerbenaGrpc.nativeChannel(target, InsecureChannelCredentials.create(), group);
    }

    private ManagedChannel open(ManagedChannelBuilder<?> builder) {
        ManagedChannel channel = builder.build();
        channels.add(channel);
        return channel;
    }

    /** Which server answered. */
    private static SocketAddress serverOf(ManagedChannel channel) throws Exception {
        ClientCall<byte[], byte[]> call = channel.newCall(
                ECHO,
                CallOptions.DEFAULT.withWaitForReady().withDeadlineAfter(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS));
        assertThat(ClientCalls.futureUnaryCall(call, new byte[] {1}).get()).containsExactly(1);
        return Objects.requireNonNull(call.getAttributes().get(Grpc.TRANSPORT_ATTR_REMOTE_ADDR));
    }

    private void reachesAll(ManagedChannel channel) {
        Set<SocketAddress> reached = new HashSet<>();
        Patience.until("each server has answered", () -> {
            try {
                reached.add(serverOf(channel));
            } catch (Exception failure) {
                throw new AssertionError(failure);
            }
            return reached.size() == servers.size();
        });
    }

    @Test
    void roundRobinUsesAllServersNatively() {
        reachesAll(open(nativeChannel(target()).http2Fallback(false).defaultLoadBalancingPolicy("round_robin")));
    }

    @Test
    void roundRobinUsesAllServersOverHttp2() {
        reachesAll(open(VerbenaGrpc.overRdma(NettyChannelBuilder.forTarget(target()), group)
                .usePlaintext()
                .defaultLoadBalancingPolicy("round_robin")));
    }

    /** The usual balancer takes the first that can be reached. */
    @Test
    void theNextServerIsUsedWhenOneHasGone() throws Exception {
        ManagedChannel channel = open(nativeChannel(target()));
        SocketAddress before = serverOf(channel);
        assertThat(((InetSocketAddress) before).getPort())
                .isEqualTo(servers.getFirst().getPort());
        servers.getFirst().shutdownNow();
        assertThat(servers.getFirst().awaitTermination(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                .isTrue();
        assertThat(serverOf(channel)).isNotEqualTo(before);
    }

    @Test
    void aNameThatIsUnknownIsLeftOut() throws Exception {
        ManagedChannel channel = open(nativeChannel(
                "verbena:///unknown.invalid:1,127.0.0.1:" + servers.getFirst().getPort()));
        assertThat(((InetSocketAddress) serverOf(channel)).getPort())
                .isEqualTo(servers.getFirst().getPort());
    }

    /** As on a host without threads for a moment. */
    @Test
    void aLookUpThatFindsNoThreadIsMadeAgain() throws Exception {
        AtomicBoolean failed = new AtomicBoolean();
        Executor threads = task -> {
            if (failed.compareAndSet(false, true)) {
                throw new OutOfMemoryError("unable to create native thread, says the test");
            }
            Thread.startVirtualThread(task);
        };
        ManagedChannel channel = open(nativeChannel(target()).offloadExecutor(threads));
        assertThat(serverOf(channel)).isNotNull();
        assertThat(failed).isTrue();
    }

    @Test
    void malformedTargetsAreRefused() {
        for (String target : List.of(
                "verbena:///",
                "verbena:///host",
                "verbena:///host:0",
                "verbena:///host:65536",
                "verbena:///host:x",
                "verbena:///host:1,",
                "verbena:///a:1,,b:2",
                "verbena://authority/host:1")) {
            assertThatThrownBy(() -> nativeChannel(target).build())
                    .as(target)
                    .isInstanceOf(IllegalArgumentException.class);
        }
    }

    @Test
    void targetsWithoutASchemeStayNamesOfDns() {
        assertThat(NameResolverRegistry.getDefaultRegistry().getDefaultScheme()).isEqualTo("dns");
    }
}
