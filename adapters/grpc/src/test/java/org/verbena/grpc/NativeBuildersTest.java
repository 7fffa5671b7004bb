package org.verbena.grpc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.grpc.CallCredentials;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.CompositeChannelCredentials;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.Server;
import io.grpc.ServerBuilder;
import io.grpc.ServerServiceDefinition;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.TlsChannelCredentials;
import io.grpc.netty.NettyChannelBuilder;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.ServerCalls;
import java.io.File;
import java.io.IOException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.net.InetSocketAddress;
import java.net.Proxy;
import java.net.ProxySelector;
import java.net.SocketAddress;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.Carrier;
import org.verbena.api.RdmaChannelOption;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.PreSharedKeys;
import org.verbena.transport.provider.ProviderChoice;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RefusingThreads;

/** One port for all kinds of clients, what happens where a server is not native, and what is refused. */
@Timeout(120)
class NativeBuildersTest {
    private static final MethodDescriptor<byte[], byte[]> ECHO = Bytes.method(MethodType.UNARY, "echo");
    private static final Metadata.Key<String> WHO = Metadata.Key.of("who", Metadata.ASCII_STRING_MARSHALLER);

    private final List<ManagedChannel> channels = new ArrayList<>();
    private final List<Server> servers = new ArrayList<>();
    private RdmaEventLoopGroup group;

    @BeforeEach
    void openGroup() {
        group = new RdmaEventLoopGroup("soft", 2);
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

    private static ServerServiceDefinition service() {
        return ServerServiceDefinition.builder("verbena.Test")
                .addMethod(ECHO, ServerCalls.asyncUnaryCall((request, response) -> {
                    response.onNext(request);
                    response.onCompleted();
                }))
                .build();
    }

    private NativeServerBuilder nativeServer(int port) {
        return VerbenaGrpc.nativeServer(new InetSocketAddress("127.0.0.1", port), group)
                .addService(service());
    }

    private Server started(Server server) throws Exception {
        servers.add(server.start());
        return server;
    }

    private ManagedChannel open(ManagedChannelBuilder<?> builder) {
        ManagedChannel channel = builder.usePlaintext().build();
        channels.add(channel);
        return channel;
    }

    private NativeChannelBuilder nativeChannel(Server server) {
        return VerbenaGrpc.nativeChannel("127.0.0.1", server.getPort(), group);
    }

    /** Calls, and says what carried it: null for HTTP/2. */
    private static Carrier carrierOf(ManagedChannel channel) throws Exception {
        ClientCall<byte[], byte[]> call = channel.newCall(
                ECHO, CallOptions.DEFAULT.withDeadlineAfter(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS));
        assertThat(ClientCalls.futureUnaryCall(call, new byte[] {1, 2}).get()).containsExactly(1, 2);
        return call.getAttributes().get(NativeChannelBuilder.CARRIER);
    }

    /** The thread of a loop cannot be started twice: for the channel, and for whatever waits for it. */
    @Test
    void aCallWithoutALoopFailsAndTheNextOneIsMade() throws Exception {
        Server server = started(nativeServer(0).build());
        try (RdmaEventLoopGroup refusing = new RdmaEventLoopGroup(
                ProviderChoice.choose("soft", null), 2, new RefusingThreads(1, 2), CompletionLoopOptions.DEFAULTS)) {
            // The first loop has gRPC's timer, without which a channel fails for good.
            ManagedChannel channel = VerbenaGrpc.nativeChannel("127.0.0.1", server.getPort(), refusing)
                    .usePlaintext()
                    .build();
            Future<byte[]> refused =
                    ClientCalls.futureUnaryCall(channel.newCall(ECHO, CallOptions.DEFAULT), new byte[] {1});
            Patience.until("the call has failed", refused::isDone);
            assertThatThrownBy(refused::get).hasCauseInstanceOf(StatusRuntimeException.class);
            assertThat(Patience.await(
                            "the next call",
                            ClientCalls.futureUnaryCall(
                                    channel.newCall(ECHO, CallOptions.DEFAULT.withWaitForReady()), new byte[] {2})))
                    .containsExactly(2);
            channel.shutdownNow();
            assertThat(channel.awaitTermination(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                    .isTrue();
        }
    }

    /** As the property {@code https.proxyHost} does. */
    private static final ProxySelector PROXY = new ProxySelector() {
        @Override
        public List<Proxy> select(URI uri) {
            return List.of(new Proxy(Proxy.Type.HTTP, new InetSocketAddress("127.0.0.1", 9)));
        }

        @Override
        public void connectFailed(URI uri, SocketAddress address, IOException failure) {}
    };

    @Test
    void connectsWithoutAProxy() throws Exception {
        Server server = started(nativeServer(0).build());
        ProxySelector before = ProxySelector.getDefault();
        ProxySelector.setDefault(PROXY);
        try {
            assertThat(carrierOf(open(nativeChannel(server).http2Fallback(false))))
                    .isNotNull();
            assertThat(carrierOf(open(VerbenaGrpc.channel("127.0.0.1", server.getPort(), group))))
                    .isNull();
        } finally {
            ProxySelector.setDefault(before);
        }
    }

    /** What gRPC adds to its builder must not be lost in ours. */
    @Test
    void theServersBuilderOverridesAll() throws Exception {
        for (Method method : ServerBuilder.class.getDeclaredMethods()) {
            int modifiers = method.getModifiers();
            if (Modifier.isPublic(modifiers) && !Modifier.isFinal(modifiers)) {
                assertThat(NativeServerBuilder.class.getMethod(method.getName(), method.getParameterTypes()))
                        .returns(NativeServerBuilder.class, Method::getDeclaringClass);
            }
        }
    }

    private static Status.Code failureOf(ManagedChannel channel) {
        return Status.fromThrowable(catchThrowable(
                        () -> ClientCalls.blockingUnaryCall(channel, ECHO, CallOptions.DEFAULT, new byte[1])))
                .getCode();
    }

    @Test
    void onePortServesNativeClientsAndThoseOfHttp2OverVerbenaAndTcp() throws Exception {
        Server server = started(
                nativeServer(0).withOption(RdmaChannelOption.PLAIN_TCP, true).build());
        assertThat(carrierOf(open(nativeChannel(server))).name()).isEqualTo("soft");
        assertThat(carrierOf(open(VerbenaGrpc.channel("127.0.0.1", server.getPort(), group))))
                .isNull();
        assertThat(carrierOf(open(NettyChannelBuilder.forAddress("127.0.0.1", server.getPort()))))
                .isNull();
    }

    @Test
    void aServerThatIsNotNativeIsCalledByHttp2() throws Exception {
        Server server = started(VerbenaGrpc.server(new InetSocketAddress("127.0.0.1", 0), group)
                .addService(service())
                .build());
        assertThat(carrierOf(open(nativeChannel(server)))).isNull();
        assertThat(failureOf(open(nativeChannel(server).http2Fallback(false)))).isEqualTo(Status.Code.UNAVAILABLE);
    }

    @Test
    void aServerThatBecomesNativeIsFoundWhenTheChannelReconnects() throws Exception {
        Server before = started(VerbenaGrpc.server(new InetSocketAddress("127.0.0.1", 0), group)
                .addService(service())
                .build());
        int port = before.getPort();
        ManagedChannel channel = open(nativeChannel(before));
        assertThat(carrierOf(channel)).isNull();
        before.shutdown().awaitTermination();
        started(nativeServer(port).build());
        channel.resetConnectBackoff();
        ClientCall<byte[], byte[]> call = channel.newCall(ECHO, CallOptions.DEFAULT.withWaitForReady());
        ClientCalls.futureUnaryCall(call, new byte[1]).get();
        assertThat(call.getAttributes().get(NativeChannelBuilder.CARRIER)).isNotNull();
    }

    @Test
    void keysAuthenticateBothEnds() throws Exception {
        PreSharedKeys key = PreSharedKeys.of("id", "a secret of this test, 32 bytes!".getBytes(StandardCharsets.UTF_8));
        PreSharedKeys other =
                PreSharedKeys.of("id", "another secret, also of 32 bytes".getBytes(StandardCharsets.UTF_8));
        Server server = started(nativeServer(0)
                .withChildOption(RdmaChannelOption.PRE_SHARED_KEYS, key)
                .build());
        ManagedChannel good = open(nativeChannel(server).withOption(RdmaChannelOption.PRE_SHARED_KEYS, key));
        assertThat(carrierOf(good)).isNotNull();
        assertThat(failureOf(open(nativeChannel(server)))).isEqualTo(Status.Code.UNAVAILABLE);
        assertThat(failureOf(open(nativeChannel(server).withOption(RdmaChannelOption.PRE_SHARED_KEYS, other))))
                .isEqualTo(Status.Code.UNAVAILABLE);
    }

    @Test
    void encryptionIsRefusedWithAReason() {
        NativeChannelBuilder channel = VerbenaGrpc.nativeChannel("localhost", 1, group);
        assertThatThrownBy(channel::useTransportSecurity).isInstanceOf(UnsupportedOperationException.class);
        assertThatThrownBy(channel::build).isInstanceOf(IllegalStateException.class);
        assertThatThrownBy(() -> nativeServer(0).useTransportSecurity(new File("a"), new File("b")))
                .isInstanceOf(UnsupportedOperationException.class);
        assertThatThrownBy(() -> VerbenaGrpc.nativeChannel("localhost:1", TlsChannelCredentials.create(), group))
                .isInstanceOf(IllegalArgumentException.class);
    }

    @Test
    void aLadderIsRefused() {
        RdmaEventLoopGroup ladder =
                new RdmaEventLoopGroup(LadderOptions.DEFAULTS, 1, null, CompletionLoopOptions.DEFAULTS);
        try (ladder) {
            assertThatThrownBy(() -> VerbenaGrpc.nativeChannel("localhost", 1, ladder))
                    .isInstanceOf(IllegalArgumentException.class);
        }
    }

    @Test
    void credentialsOfCallsArrive() throws Exception {
        AtomicReference<String> who = new AtomicReference<>();
        Server server = started(nativeServer(0)
                .intercept(new io.grpc.ServerInterceptor() {
                    @Override
                    public <A, B> io.grpc.ServerCall.Listener<A> interceptCall(
                            io.grpc.ServerCall<A, B> call, Metadata headers, io.grpc.ServerCallHandler<A, B> next) {
                        who.set(headers.get(WHO));
                        return next.startCall(call, headers);
                    }
                })
                .build());
        CallCredentials credentials = new CallCredentials() {
            @Override
            public void applyRequestMetadata(RequestInfo info, Executor executor, MetadataApplier applier) {
                Metadata headers = new Metadata();
                headers.put(WHO, "me");
                applier.apply(headers);
            }
        };
        ManagedChannel channel = VerbenaGrpc.nativeChannel(
                        "127.0.0.1:" + server.getPort(),
                        CompositeChannelCredentials.create(InsecureChannelCredentials.create(), credentials),
                        group)
                .build();
        channels.add(channel);
        assertThat(carrierOf(channel)).isNotNull();
        assertThat(who.get()).isEqualTo("me");
    }

    @Test
    void compressedCallsAreAnswered() throws Exception {
        Server server = started(nativeServer(0).build());
        byte[] zeros = new byte[300_000];
        byte[] answer = ClientCalls.blockingUnaryCall(
                open(nativeChannel(server)), ECHO, CallOptions.DEFAULT.withCompression("gzip"), zeros);
        assertThat(answer).isEqualTo(zeros);
    }

    @Test
    void aMessageAboveTheLimitFailsItsCall() throws Exception {
        Server server = started(nativeServer(0).maxInboundMessageSize(1000).build());
        ManagedChannel channel = open(nativeChannel(server));
        Throwable failure = catchThrowable(
                () -> ClientCalls.blockingUnaryCall(channel, ECHO, CallOptions.DEFAULT, new byte[100_000]));
        assertThat(Status.fromThrowable(failure).getCode()).isEqualTo(Status.Code.RESOURCE_EXHAUSTED);
        assertThat(carrierOf(channel)).as("the connection goes on").isNotNull();
    }

    /** Servers leave one after another, and others take their place, while calls are made. */
    @Test
    void aRollingUpdateFailsNoCall() throws Exception {
        Server first = started(nativeServer(0).build());
        int port = first.getPort();
        ManagedChannel channel = open(nativeChannel(first).http2Fallback(false));
        assertThat(carrierOf(channel)).isNotNull();
        AtomicBoolean over = new AtomicBoolean();
        AtomicInteger answered = new AtomicInteger();
        Server current = first;
        try (ExecutorService callers = Executors.newFixedThreadPool(4)) {
            List<Future<?>> all = new ArrayList<>();
            try {
                for (int i = 0; i < 4; i++) {
                    int bytes = i % 2 == 0 ? 64 : 200_000;
                    all.add(callers.submit(() -> {
                        while (!over.get()) {
                            byte[] reply = ClientCalls.blockingUnaryCall(
                                    channel, ECHO, CallOptions.DEFAULT.withWaitForReady(), new byte[bytes]);
                            assertThat(reply).hasSize(bytes);
                            answered.incrementAndGet();
                        }
                    }));
                }
                for (int round = 0; round < 3; round++) {
                    int before = answered.get();
                    Patience.until("calls pass", () -> answered.get() > before + 20);
                    current.shutdown();
                    assertThat(current.awaitTermination(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                            .as("the server has drained")
                            .isTrue();
                    current = started(nativeServer(port).build());
                    channel.resetConnectBackoff();
                }
                int before = answered.get();
                Patience.until("calls pass", () -> answered.get() > before + 20);
            } finally {
                over.set(true);
            }
            for (Future<?> caller : all) {
                caller.get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS); // throws what a call has failed with
            }
        }
    }

    /** Connections end by their age while calls are under way. */
    @Test
    void connectionsOfALimitedAgeFailNoCall() throws Exception {
        AtomicInteger connections = new AtomicInteger();
        Server server = started(nativeServer(0)
                .maxConnectionAge(1, TimeUnit.MILLISECONDS) // gRPC makes a second of it
                .maxConnectionAgeGrace(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS)
                .addTransportFilter(new io.grpc.ServerTransportFilter() {
                    @Override
                    public io.grpc.Attributes transportReady(io.grpc.Attributes attributes) {
                        connections.incrementAndGet();
                        return attributes;
                    }
                })
                .build());
        ManagedChannel channel = open(nativeChannel(server).http2Fallback(false));
        while (connections.get() < 3) {
            assertThat(carrierOf(channel)).isNotNull();
        }
    }
}
