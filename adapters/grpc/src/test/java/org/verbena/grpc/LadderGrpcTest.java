package org.verbena.grpc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.grpc.CallOptions;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.Server;
import io.grpc.ServerServiceDefinition;
import io.grpc.Status;
import io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.NettyServerBuilder;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.ServerCalls;
import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.api.Carrier;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.api.ladder.LadderStatistics;
import org.verbena.transport.spi.Patience;

/** gRPC's clients by a ladder: to a server of Verbena by soft, to a usual one by plain TCP, or not at all. */
@Timeout(120)
class LadderGrpcTest {
    private static final String HOST = "127.0.0.1";
    private static final MethodDescriptor<byte[], byte[]> ECHO = Bytes.method(MethodType.UNARY, "echo");
    private static final MethodDescriptor<byte[], byte[]> CHAT = Bytes.method(MethodType.BIDI_STREAMING, "chat");
    private static final LadderOptions LADDER = LadderOptions.DEFAULTS;

    /** So that soft is used, where the server has it, however slow the machine is. */
    private static final LadderOptions PATIENT = LADDER.withHedgeDelay(Duration.ofMinutes(1));

    private final List<ManagedChannel> channels = new ArrayList<>();
    private final List<Server> servers = new ArrayList<>();
    private RdmaEventLoopGroup group;

    @BeforeEach
    void openGroup() {
        group = new RdmaEventLoopGroup("ladder", 2);
    }

    @AfterEach
    void endAll() throws InterruptedException {
        for (ManagedChannel channel : channels) {
            channel.shutdownNow();
            assertThat(channel.awaitTermination(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                    .isTrue();
        }
        for (Server server : servers) {
            server.shutdownNow();
            assertThat(server.awaitTermination(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                    .isTrue();
        }
        group.close();
    }

    private Server serve(NettyServerBuilder builder, boolean tls) throws IOException {
        if (tls) {
            builder.sslContext(Tls.server());
        }
        Server server = builder.addService(ServerServiceDefinition.builder("verbena.Test")
                        .addMethod(ECHO, ServerCalls.asyncUnaryCall((request, response) -> {
                            response.onNext(request);
                            response.onCompleted();
                        }))
                        .addMethod(CHAT, ServerCalls.asyncBidiStreamingCall(EchoStream::new))
                        .build())
                .build()
                .start();
        servers.add(server);
        return server;
    }

    private Server ofVerbena(boolean tls) throws IOException {
        return serve(VerbenaGrpc.server(new InetSocketAddress(HOST, 0), group), tls);
    }

    private Server usual(boolean tls) throws IOException {
        return serve(NettyServerBuilder.forAddress(new InetSocketAddress(HOST, 0)), tls);
    }

    /** Sends back what comes. */
    private record EchoStream(StreamObserver<byte[]> response) implements StreamObserver<byte[]> {
        @Override
        public void onNext(byte[] message) {
            response.onNext(message);
        }

        @Override
        public void onError(Throwable cause) {
            // the client has gone
        }

        @Override
        public void onCompleted() {
            response.onCompleted();
        }
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

    private static long used(String rung) {
        return LadderStatistics.of(rung).used();
    }

    private static byte[] echo(ManagedChannel channel, byte... message) {
        return ClientCalls.blockingUnaryCall(channel, ECHO, CallOptions.DEFAULT, message);
    }

    private void assertServes(ManagedChannel channel) {
        assertThat(echo(channel, (byte) 7)).containsExactly(7);
        byte[] large = new byte[3 << 20];
        large[large.length - 1] = 5;
        assertThat(echo(channel, large)).isEqualTo(large);
        BlockingQueue<Integer> answers = new LinkedBlockingQueue<>();
        StreamObserver<byte[]> requests =
                ClientCalls.asyncBidiStreamingCall(channel.newCall(CHAT, CallOptions.DEFAULT), new StreamObserver<>() {
                    @Override
                    public void onNext(byte[] message) {
                        answers.add(message.length);
                    }

                    @Override
                    public void onError(Throwable cause) {
                        answers.add(-2);
                    }

                    @Override
                    public void onCompleted() {
                        answers.add(-1);
                    }
                });
        for (int i = 0; i < 100; i++) {
            requests.onNext(new byte[i * 100]);
        }
        requests.onCompleted();
        for (int i = 0; i < 100; i++) {
            assertThat(Patience.take("an answer", answers)).isEqualTo(i * 100);
        }
        assertThat(Patience.take("the end", answers)).isEqualTo(-1);
    }

    @ParameterizedTest(name = "TLS {0}")
    @ValueSource(booleans = {false, true})
    void usesSoftWhereTheServerHasIt(boolean tls) throws Exception {
        long before = used("soft");
        Server server = ofVerbena(tls);
        assertServes(open(VerbenaGrpc.channel(HOST, server.getPort(), PATIENT, group), tls));
        assertThat(used("soft")).isEqualTo(before + 1);
    }

    @ParameterizedTest(name = "TLS {0}")
    @ValueSource(booleans = {false, true})
    void fallsToPlainTcpWhereTheServerIsAUsualOne(boolean tls) throws Exception {
        long before = used(Carrier.TCP);
        Server server = usual(tls);
        assertServes(open(VerbenaGrpc.channel(HOST, server.getPort(), LADDER, group), tls));
        assertThat(used(Carrier.TCP)).isEqualTo(before + 1);
    }

    @ParameterizedTest(name = "TLS {0}")
    @ValueSource(booleans = {false, true})
    void goesNoLowerThanItMay(boolean tls) throws Exception {
        long before = used(Carrier.TCP);
        Server server = usual(tls);
        ManagedChannel channel =
                open(VerbenaGrpc.channel(HOST, server.getPort(), LADDER.withMinimumRung("soft"), group), tls);
        Throwable failure = catchThrowable(() -> echo(channel, (byte) 7));
        assertThat(Status.fromThrowable(failure).getCode()).isEqualTo(Status.Code.UNAVAILABLE);
        assertThat(failure).hasRootCauseInstanceOf(IOException.class);
        assertThat(failure.getCause()).hasMessageContaining("none below soft is allowed");
        assertThat(used(Carrier.TCP)).isEqualTo(before);
    }

    /** Its channel uses the ladder again when it reconnects. */
    @Test
    void movesWithItsServer() throws Exception {
        Server usual = usual(false);
        int port = usual.getPort();
        ManagedChannel channel =
                open(VerbenaGrpc.channel(HOST, port, PATIENT.withForgetAfter(Duration.ZERO), group), false);
        assertThat(echo(channel, (byte) 1)).containsExactly(1);
        usual.shutdownNow();
        usual.awaitTermination();
        long before = used("soft");
        serve(VerbenaGrpc.server(new InetSocketAddress(HOST, port), group), false);
        Patience.until("the channel has connected again", () -> {
            channel.resetConnectBackoff();
            return catchThrowable(() -> echo(channel, (byte) 2)) == null;
        });
        assertThat(used("soft")).isEqualTo(before + 1);
    }

    @Test
    void loopsThatAreMadeForALadderClimb() throws Exception {
        long before = used(Carrier.TCP);
        Server server = usual(false);
        assertServes(open(VerbenaGrpc.channel(HOST, server.getPort(), group), false));
        assertThat(used(Carrier.TCP)).isEqualTo(before + 1);
    }

    @Test
    void hasLoopsOfItsOwn() throws Exception {
        Server server = usual(false);
        assertServes(open(VerbenaGrpc.channel(HOST, server.getPort(), LADDER), false));
        assertServes(open(
                VerbenaGrpc.overLadder(
                        NettyChannelBuilder.forTarget("dns:///" + HOST + ":" + server.getPort()), LADDER),
                false));
    }
}
