package org.verbena.grpc;

import static org.assertj.core.api.Assertions.assertThat;

import io.grpc.Attributes;
import io.grpc.BinaryLog;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptors;
import io.grpc.Grpc;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.SecurityLevel;
import io.grpc.Server;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;
import io.grpc.ServerMethodDefinition;
import io.grpc.channelz.v1.ChannelzGrpc;
import io.grpc.channelz.v1.GetServerSocketsRequest;
import io.grpc.channelz.v1.GetServersRequest;
import io.grpc.channelz.v1.GetSocketRequest;
import io.grpc.channelz.v1.GetTopChannelsRequest;
import io.grpc.channelz.v1.Socket;
import io.grpc.channelz.v1.SocketRef;
import io.grpc.health.v1.HealthCheckRequest;
import io.grpc.health.v1.HealthCheckResponse;
import io.grpc.health.v1.HealthCheckResponse.ServingStatus;
import io.grpc.health.v1.HealthGrpc;
import io.grpc.internal.GrpcAttributes;
import io.grpc.protobuf.services.ChannelzService;
import io.grpc.protobuf.services.HealthStatusManager;
import io.grpc.protobuf.services.ProtoReflectionServiceV1;
import io.grpc.reflection.v1.ServerReflectionGrpc;
import io.grpc.reflection.v1.ServerReflectionRequest;
import io.grpc.reflection.v1.ServerReflectionResponse;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.StreamObserver;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.RdmaChannelOption;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.transport.spi.Patience;

/** gRPC's services of its own on the native transport, and what it says of connections. */
@Timeout(120)
class NativeServicesTest {
    private final HealthStatusManager health = new HealthStatusManager();
    private final AtomicReference<Attributes> served = new AtomicReference<>();
    private final CountingLog log = new CountingLog();
    private RdmaEventLoopGroup group;
    private Server server;
    private ManagedChannel channel;

    @BeforeEach
    void open() throws Exception {
        group = new RdmaEventLoopGroup("soft", 2);
        server = VerbenaGrpc.nativeServer(new InetSocketAddress("127.0.0.1", 0), group)
                .addService(health.getHealthService())
                .addService(ProtoReflectionServiceV1.newInstance())
                .addService(ChannelzService.newInstance(100))
                .setBinaryLog(log)
                .intercept(new ServerInterceptor() {
                    @Override
                    public <A, B> ServerCall.Listener<A> interceptCall(
                            ServerCall<A, B> call, Metadata headers, ServerCallHandler<A, B> next) {
                        served.set(call.getAttributes());
                        return next.startCall(call, headers);
                    }
                })
                .build()
                .start();
        channel = VerbenaGrpc.nativeChannel("127.0.0.1", server.getPort(), group)
                .http2Fallback(false)
                .setBinaryLog(log)
                .usePlaintext()
                .build();
    }

    @AfterEach
    void close() throws Exception {
        channel.shutdownNow();
        server.shutdownNow();
        assertThat(channel.awaitTermination(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                .isTrue();
        assertThat(server.awaitTermination(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                .isTrue();
        group.close();
    }

    /** Counts calls as they pass, where logs of gRPC's are: on the transport's side of all interceptors. */
    private static final class CountingLog extends BinaryLog {
        final AtomicInteger ofClients = new AtomicInteger();
        final AtomicInteger ofServers = new AtomicInteger();

        @Override
        public <A, B> ServerMethodDefinition<?, ?> wrapMethodDefinition(ServerMethodDefinition<A, B> method) {
            return method.withServerCallHandler((call, headers) -> {
                ofServers.incrementAndGet();
                return method.getServerCallHandler().startCall(call, headers);
            });
        }

        @Override
        public Channel wrapChannel(Channel wrapped) {
            return ClientInterceptors.intercept(wrapped, new io.grpc.ClientInterceptor() {
                @Override
                public <A, B> ClientCall<A, B> interceptCall(
                        io.grpc.MethodDescriptor<A, B> method, CallOptions options, Channel next) {
                    ofClients.incrementAndGet();
                    return next.newCall(method, options);
                }
            });
        }

        @Override
        public void close() {}
    }

    private HealthGrpc.HealthBlockingStub healthOf() {
        return HealthGrpc.newBlockingStub(channel).withDeadlineAfter(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS);
    }

    @Test
    void healthIsAskedAndWatched() {
        BlockingQueue<ServingStatus> seen = new LinkedBlockingQueue<>();
        HealthGrpc.newStub(channel).watch(HealthCheckRequest.getDefaultInstance(), new Recorder<HealthCheckResponse>() {
            @Override
            public void onNext(HealthCheckResponse response) {
                seen.add(response.getStatus());
            }
        });
        assertThat(Patience.take("the state", seen)).isEqualTo(ServingStatus.SERVING);
        health.setStatus("", ServingStatus.NOT_SERVING);
        assertThat(Patience.take("the next state", seen)).isEqualTo(ServingStatus.NOT_SERVING);
        assertThat(healthOf().check(HealthCheckRequest.getDefaultInstance()).getStatus())
                .isEqualTo(ServingStatus.NOT_SERVING);
    }

    @Test
    void reflectionListsTheServices() {
        BlockingQueue<ServerReflectionResponse> answers = new LinkedBlockingQueue<>();
        StreamObserver<ServerReflectionRequest> requests = ServerReflectionGrpc.newStub(channel)
                .serverReflectionInfo(new Recorder<ServerReflectionResponse>() {
                    @Override
                    public void onNext(ServerReflectionResponse response) {
                        answers.add(response);
                    }
                });
        requests.onNext(ServerReflectionRequest.newBuilder().setListServices("").build());
        List<String> names = new ArrayList<>();
        Patience.take("the services", answers)
                .getListServicesResponse()
                .getServiceList()
                .forEach(service -> names.add(service.getName()));
        requests.onCompleted();
        assertThat(names).contains("grpc.health.v1.Health", "grpc.channelz.v1.Channelz");
    }

    @Test
    void channelzShowsChannelServerAndConnection() {
        healthOf().check(HealthCheckRequest.getDefaultInstance());
        ChannelzGrpc.ChannelzBlockingStub channelz =
                ChannelzGrpc.newBlockingStub(channel).withDeadlineAfter(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS);
        assertThat(channelz.getTopChannels(GetTopChannelsRequest.getDefaultInstance())
                        .getChannelList())
                .anyMatch(shown -> shown.getData().getTarget().endsWith(":" + server.getPort())
                        && shown.getData().getCallsSucceeded() > 0);
        List<SocketRef> sockets = new ArrayList<>();
        channelz.getServers(GetServersRequest.getDefaultInstance())
                .getServerList()
                .forEach(shown -> sockets.addAll(channelz.getServerSockets(GetServerSocketsRequest.newBuilder()
                                .setServerId(shown.getRef().getServerId())
                                .build())
                        .getSocketRefList()));
        List<Socket> shown = new ArrayList<>();
        for (SocketRef socket : sockets) {
            shown.add(channelz.getSocket(GetSocketRequest.newBuilder()
                            .setSocketId(socket.getSocketId())
                            .build())
                    .getSocket());
        }
        assertThat(shown)
                .anyMatch(socket -> socket.getLocal().getTcpipAddress().getPort() == server.getPort()
                        && socket.getData().getStreamsSucceeded() > 0
                        && socket.getData().getMessagesReceived() > 0
                        && socket.getData().getMessagesSent() > 0
                        && socket.getData().getOptionList().stream()
                                .anyMatch(option -> option.getName().equals("carrier")
                                        && option.getValue().contains("soft"))
                        && socket.getData().getOptionList().stream()
                                .anyMatch(option -> option.getName().equals(RdmaChannelOption.RECEIVE_DEPTH.name())));
    }

    @Test
    void callsKnowTheirConnection() throws Exception {
        ClientCall<HealthCheckRequest, HealthCheckResponse> call = channel.newCall(
                HealthGrpc.getCheckMethod(),
                CallOptions.DEFAULT.withDeadlineAfter(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS));
        ClientCalls.futureUnaryCall(call, HealthCheckRequest.getDefaultInstance())
                .get();
        Attributes ofClient = call.getAttributes();
        Attributes ofServer = served.get();
        assertThat(ofClient.get(NativeChannelBuilder.CARRIER).name()).isEqualTo("soft");
        assertThat(ofServer.get(NativeChannelBuilder.CARRIER).name()).isEqualTo("soft");
        assertThat(((InetSocketAddress) ofClient.get(Grpc.TRANSPORT_ATTR_REMOTE_ADDR)).getPort())
                .isEqualTo(server.getPort());
        assertThat(ofServer.get(Grpc.TRANSPORT_ATTR_REMOTE_ADDR))
                .isEqualTo(ofClient.get(Grpc.TRANSPORT_ATTR_LOCAL_ADDR));
        assertThat(ofClient.get(GrpcAttributes.ATTR_SECURITY_LEVEL)).isEqualTo(SecurityLevel.NONE);
        assertThat(ofServer.get(GrpcAttributes.ATTR_SECURITY_LEVEL)).isEqualTo(SecurityLevel.NONE);
        assertThat(ofServer.get(Grpc.TRANSPORT_ATTR_SSL_SESSION)).isNull();
    }

    /** Binary logs wrap channels and methods, so they see native calls as others. */
    @Test
    void binaryLogsSeeBothEnds() {
        healthOf().check(HealthCheckRequest.getDefaultInstance());
        assertThat(log.ofClients.get()).isEqualTo(1);
        assertThat(log.ofServers.get()).isEqualTo(1);
    }

    /** Of a stream that a test leaves open. */
    private abstract static class Recorder<T> implements StreamObserver<T> {
        @Override
        public void onError(Throwable failure) {}

        @Override
        public void onCompleted() {}
    }
}
