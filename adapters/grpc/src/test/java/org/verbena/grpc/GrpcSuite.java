package org.verbena.grpc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import com.google.common.util.concurrent.ListenableFuture;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.ConnectivityState;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.Server;
import io.grpc.ServerBuilder;
import io.grpc.ServerCall;
import io.grpc.ServerServiceDefinition;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.NettyServerBuilder;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.ServerCallStreamObserver;
import io.grpc.stub.ServerCalls;
import io.grpc.stub.StreamObserver;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.transport.spi.Patience;

/** What applications have from gRPC, over Verbena. A subclass names provider and address. */
@Timeout(350)
public abstract class GrpcSuite {
    private static final int MAX_MESSAGE_BYTES = 80 << 20;
    private static final MethodDescriptor<byte[], byte[]> ECHO = Bytes.method(MethodType.UNARY, "echo");
    private static final MethodDescriptor<byte[], byte[]> NEVER = Bytes.method(MethodType.UNARY, "never");
    private static final MethodDescriptor<byte[], byte[]> CHAT = Bytes.method(MethodType.BIDI_STREAMING, "chat");
    private static final MethodDescriptor<byte[], byte[]> FLOOD = Bytes.method(MethodType.SERVER_STREAMING, "flood");
    private static final MethodDescriptor<byte[], byte[]> ENDLESS =
            Bytes.method(MethodType.SERVER_STREAMING, "endless");
    private static final MethodDescriptor<byte[], byte[]> UNREAD = Bytes.method(MethodType.CLIENT_STREAMING, "unread");
    private static final int FLOOD_MESSAGES = 2000;
    private static final int FLOOD_BYTES = 10_000;

    private RdmaEventLoopGroup group;
    private final List<Server> servers = new ArrayList<>();
    private final List<ManagedChannel> channels = new ArrayList<>();
    private final CountDownLatch cancelled = new CountDownLatch(1);
    private final AtomicInteger flooded = new AtomicInteger();
    private final AtomicInteger unanswered = new AtomicInteger();

    /** Which provider. */
    protected abstract String provider();

    /** Where servers listen. */
    protected String host() {
        return "127.0.0.1";
    }

    /** Of the largest message. */
    protected int largestBytes() {
        return 64 << 20;
    }

    /** How many channels there are at once, where many are wanted. */
    protected int manyChannels() {
        return 200;
    }

    /** How many calls are under way at once on a channel, where many are wanted. */
    protected int callsAtOnce() {
        return 500;
    }

    /** The loops of both ends. */
    RdmaEventLoopGroup newGroup() {
        return new RdmaEventLoopGroup(provider(), 3);
    }

    @BeforeEach
    void openGroup() {
        group = newGroup();
    }

    @AfterEach
    void endAll() throws InterruptedException {
        for (ManagedChannel channel : channels) {
            channel.shutdownNow();
        }
        for (Server server : servers) {
            server.shutdownNow();
        }
        for (ManagedChannel channel : channels) {
            assertThat(channel.awaitTermination(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                    .isTrue();
        }
        for (Server server : servers) {
            assertThat(server.awaitTermination(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                    .isTrue();
        }
        group.close();
        assertThat(group.isTerminated()).isTrue();
    }

    private ServerServiceDefinition service() {
        return ServerServiceDefinition.builder("verbena.Test")
                .addMethod(ECHO, ServerCalls.asyncUnaryCall((request, response) -> {
                    response.onNext(request);
                    response.onCompleted();
                }))
                .addMethod(NEVER, ServerCalls.asyncUnaryCall((request, response) -> {
                    ((ServerCallStreamObserver<byte[]>) response).setOnCancelHandler(cancelled::countDown);
                    unanswered.incrementAndGet();
                }))
                .addMethod(CHAT, ServerCalls.asyncBidiStreamingCall(response -> new StreamObserver<>() {
                    @Override
                    public void onNext(byte[] message) {
                        response.onNext(message);
                    }

                    @Override
                    public void onError(Throwable cause) {
                        cancelled.countDown();
                    }

                    @Override
                    public void onCompleted() {
                        response.onCompleted();
                    }
                }))
                .addMethod(FLOOD, ServerCalls.asyncServerStreamingCall(this::flood))
                .addMethod(ENDLESS, ServerCalls.asyncServerStreamingCall((request, response) -> {
                    ServerCallStreamObserver<byte[]> paced = (ServerCallStreamObserver<byte[]>) response;
                    paced.setOnReadyHandler(() -> {
                        while (paced.isReady()) {
                            paced.onNext(new byte[FLOOD_BYTES]);
                            flooded.incrementAndGet();
                        }
                    });
                }))
                .addMethod(UNREAD, (call, headers) -> new ServerCall.Listener<>() {})
                .build();
    }

    /** Sends as long as the client takes it. */
    private void flood(byte[] request, StreamObserver<byte[]> response) {
        ServerCallStreamObserver<byte[]> paced = (ServerCallStreamObserver<byte[]>) response;
        paced.setOnReadyHandler(() -> {
            while (paced.isReady() && flooded.get() < FLOOD_MESSAGES) {
                paced.onNext(new byte[FLOOD_BYTES]);
                if (flooded.incrementAndGet() == FLOOD_MESSAGES) {
                    paced.onCompleted();
                }
            }
        });
    }

    /** A server's builder. */
    protected ServerBuilder<?> newServer(InetSocketAddress address, RdmaEventLoopGroup loops) {
        return VerbenaGrpc.server(address, loops);
    }

    /** A channel's builder. */
    protected ManagedChannelBuilder<?> newChannel(int port, RdmaEventLoopGroup loops) {
        return VerbenaGrpc.channel(host(), port, loops);
    }

    private Server serve(int port, Consumer<ServerBuilder<?>> more) throws Exception {
        ServerBuilder<?> builder = newServer(new InetSocketAddress(host(), port), group)
                .maxInboundMessageSize(MAX_MESSAGE_BYTES)
                .permitKeepAliveTime(1, TimeUnit.MILLISECONDS)
                .permitKeepAliveWithoutCalls(true)
                .addService(service());
        more.accept(builder);
        Server server = builder.build().start();
        servers.add(server);
        return server;
    }

    private Server serve() throws Exception {
        return serve(0, builder -> {});
    }

    private ManagedChannel channelTo(int port, Consumer<ManagedChannelBuilder<?>> more) {
        ManagedChannelBuilder<?> builder =
                newChannel(port, group).usePlaintext().maxInboundMessageSize(MAX_MESSAGE_BYTES);
        more.accept(builder);
        ManagedChannel channel = builder.build();
        channels.add(channel);
        return channel;
    }

    private ManagedChannel channelTo(Server server) {
        return channelTo(server.getPort(), builder -> {});
    }

    private static byte[] random(long seed, int bytes) {
        byte[] value = new byte[bytes];
        new Random(seed).nextBytes(value);
        return value;
    }

    private static byte[] echo(ManagedChannel channel, byte[] value) {
        return ClientCalls.blockingUnaryCall(
                channel,
                ECHO,
                CallOptions.DEFAULT.withDeadlineAfter(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS),
                value);
    }

    private static Status.Code failure(ListenableFuture<?> call) throws Exception {
        Throwable failure = catchThrowable(() -> call.get(Patience.LIMIT.toMillis(), TimeUnit.MILLISECONDS));
        assertThat(failure).hasCauseInstanceOf(StatusRuntimeException.class);
        return ((StatusRuntimeException) failure.getCause()).getStatus().getCode();
    }

    @Test
    void unaryCallsOfAllSizesAreAnswered() throws Exception {
        ManagedChannel channel = channelTo(serve());
        for (int bytes : new int[] {0, 1, 64, 4096, 16_384, 100_000, 1 << 20, 4 << 20}) {
            byte[] value = random(bytes, bytes);
            assertThat(echo(channel, value)).isEqualTo(value);
        }
    }

    @Test
    void largeMessagesPass() throws Exception {
        ManagedChannel channel = channelTo(serve());
        byte[] value = random(1, largestBytes());
        assertThat(echo(channel, value)).isEqualTo(value);
    }

    @Test
    protected void manyCallsAreUnderWayAtOnce() throws Exception {
        ManagedChannel channel = channelTo(serve());
        List<ListenableFuture<byte[]>> calls = new ArrayList<>();
        for (int i = 0; i < callsAtOnce(); i++) {
            calls.add(ClientCalls.futureUnaryCall(
                    channel.newCall(ECHO, CallOptions.DEFAULT), random(i, i % 10 == 0 ? 100_000 : i)));
        }
        for (int i = 0; i < callsAtOnce(); i++) {
            assertThat(calls.get(i).get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                    .isEqualTo(random(i, i % 10 == 0 ? 100_000 : i));
        }
    }

    @Test
    protected void tlsAuthenticatesBothEnds() throws Exception {
        Server server = serve(0, builder -> ((NettyServerBuilder) builder).sslContext(Tls.server()));
        ManagedChannel channel = channelTo(
                server.getPort(),
                builder -> ((NettyChannelBuilder) builder.useTransportSecurity())
                        .sslContext(Tls.client())
                        .overrideAuthority(Tls.NAME));
        byte[] value = random(5, 3_000_000);
        assertThat(echo(channel, value)).isEqualTo(value);
    }

    @Test
    void deadlinesAreKept() throws Exception {
        ManagedChannel channel = channelTo(serve());
        echo(channel, new byte[1]);
        ListenableFuture<byte[]> call = ClientCalls.futureUnaryCall(
                channel.newCall(NEVER, CallOptions.DEFAULT.withDeadlineAfter(200, TimeUnit.MILLISECONDS)), new byte[1]);
        assertThat(failure(call)).isEqualTo(Status.Code.DEADLINE_EXCEEDED);
        assertThat(cancelled.await(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                .as("the server hears of it")
                .isTrue();
    }

    @Test
    void cancellationReachesTheServer() throws Exception {
        ManagedChannel channel = channelTo(serve());
        ClientCall<byte[], byte[]> call = channel.newCall(CHAT, CallOptions.DEFAULT);
        BlockingQueue<byte[]> answers = new LinkedBlockingQueue<>();
        AtomicReference<Throwable> failure = new AtomicReference<>();
        StreamObserver<byte[]> requests = ClientCalls.asyncBidiStreamingCall(call, collecting(answers, failure));
        requests.onNext(new byte[] {1});
        Patience.take("the answer", answers);
        call.cancel("enough", null);
        assertThat(cancelled.await(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                .as("the server hears of it")
                .isTrue();
        Patience.until("the client's outcome", () -> failure.get() != null);
        assertThat(Status.fromThrowable(failure.get()).getCode()).isEqualTo(Status.Code.CANCELLED);
        assertThat(echo(channel, new byte[3])).as("the channel goes on").hasSize(3);
    }

    private static StreamObserver<byte[]> collecting(
            BlockingQueue<byte[]> answers, AtomicReference<Throwable> failure) {
        return new StreamObserver<>() {
            @Override
            public void onNext(byte[] message) {
                answers.add(message);
            }

            @Override
            public void onError(Throwable cause) {
                failure.set(cause);
            }

            @Override
            public void onCompleted() {
                answers.add(new byte[0]);
            }
        };
    }

    @Test
    void streamsGoBothWays() throws Exception {
        ManagedChannel channel = channelTo(serve());
        BlockingQueue<byte[]> answers = new LinkedBlockingQueue<>();
        AtomicReference<Throwable> failure = new AtomicReference<>();
        StreamObserver<byte[]> requests = ClientCalls.asyncBidiStreamingCall(
                channel.newCall(CHAT, CallOptions.DEFAULT), collecting(answers, failure));
        for (int i = 0; i < 1000; i++) {
            requests.onNext(random(i, 1 + i * 7 % 5000));
        }
        requests.onCompleted();
        for (int i = 0; i < 1000; i++) {
            assertThat(Patience.take("answer " + i, answers)).isEqualTo(random(i, 1 + i * 7 % 5000));
        }
        assertThat(Patience.take("the end", answers)).isEmpty();
        assertThat(failure.get()).isNull();
    }

    @Test
    protected void aClientThatDoesNotAskIsNotFlooded() throws Exception {
        ManagedChannel channel = channelTo(serve());
        ClientCall<byte[], byte[]> call = channel.newCall(FLOOD, CallOptions.DEFAULT);
        AtomicInteger received = new AtomicInteger();
        AtomicReference<Status> end = new AtomicReference<>();
        call.start(
                new ClientCall.Listener<>() {
                    @Override
                    public void onMessage(byte[] message) {
                        received.incrementAndGet();
                    }

                    @Override
                    public void onClose(Status status, Metadata trailers) {
                        end.set(status);
                    }
                },
                new Metadata());
        call.sendMessage(new byte[0]);
        call.halfClose();
        call.request(1);
        Patience.until("the first message", () -> received.get() == 1);
        int before;
        do { // until other calls on the connection see no more of it pass
            before = flooded.get();
            for (int i = 0; i < 50; i++) {
                echo(channel, new byte[FLOOD_BYTES]);
            }
        } while (flooded.get() > before);
        assertThat(flooded.get()).as("messages the server could send").isLessThan(FLOOD_MESSAGES);
        call.request(FLOOD_MESSAGES);
        Patience.until("all messages", () -> end.get() != null);
        assertThat(end.get().isOk()).isTrue();
        assertThat(received.get()).isEqualTo(FLOOD_MESSAGES);
    }

    private static List<ClientCall<byte[], byte[]>> started(
            ManagedChannel channel, MethodDescriptor<byte[], byte[]> method) {
        List<ClientCall<byte[], byte[]>> calls = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
            ClientCall<byte[], byte[]> call = channel.newCall(method, CallOptions.DEFAULT);
            call.start(new ClientCall.Listener<>() {}, new Metadata());
            calls.add(call);
        }
        return calls;
    }

    @Test
    void answersThatNobodyReadsHoldNoOtherCallUp() throws Exception {
        ManagedChannel channel = channelTo(serve());
        for (ClientCall<byte[], byte[]> call : started(channel, ENDLESS)) {
            call.sendMessage(new byte[0]);
            call.halfClose();
            call.request(1);
        }
        Patience.until("the first messages", () -> flooded.get() > 0);
        int before;
        do { // until the streams are full
            before = flooded.get();
            for (int i = 0; i < 50; i++) {
                echo(channel, new byte[FLOOD_BYTES]);
            }
        } while (flooded.get() > before);
    }

    @Test
    void requestsThatNobodyReadsHoldNoOtherCallUp() throws Exception {
        ManagedChannel channel = channelTo(serve());
        List<ClientCall<byte[], byte[]>> calls = started(channel, UNREAD);
        int sent = 0;
        int before;
        do {
            before = sent;
            for (ClientCall<byte[], byte[]> call : calls) {
                while (call.isReady()) {
                    call.sendMessage(new byte[FLOOD_BYTES]);
                    sent++;
                }
            }
            for (int i = 0; i < 50; i++) {
                echo(channel, new byte[FLOOD_BYTES]);
            }
        } while (sent > before || sent == 0);
    }

    @Test
    void keepalivePingsAreAnswered() throws Exception {
        // Clients ping every 10 s at the most often; servers may be told to do it more often.
        Server server = serve(
                0, builder -> builder.keepAliveTime(100, TimeUnit.MILLISECONDS).keepAliveTimeout(4, TimeUnit.SECONDS));
        ManagedChannel channel = channelTo(server);
        echo(channel, new byte[1]);
        AtomicInteger changes = new AtomicInteger();
        channel.notifyWhenStateChanged(ConnectivityState.READY, changes::incrementAndGet);
        Patience.sleep(4_500);
        assertThat(changes.get()).as("an unanswered ping would have ended it").isZero();
        echo(channel, new byte[1]);
    }

    @Test
    void nobodyListeningIsUnavailable() {
        ManagedChannel channel = channelTo(1, builder -> {});
        Throwable failure =
                catchThrowable(() -> ClientCalls.blockingUnaryCall(channel, ECHO, CallOptions.DEFAULT, new byte[1]));
        assertThat(Status.fromThrowable(failure).getCode()).isEqualTo(Status.Code.UNAVAILABLE);
    }

    @Test
    void aChannelReconnectsWhenItsServerIsBack() throws Exception {
        Server first = serve();
        int port = first.getPort();
        ManagedChannel channel = channelTo(first);
        echo(channel, new byte[1]);
        ListenableFuture<byte[]> pending =
                ClientCalls.futureUnaryCall(channel.newCall(NEVER, CallOptions.DEFAULT), new byte[1]);
        Patience.until("the call has come", () -> unanswered.get() == 1);
        first.shutdownNow();
        assertThat(first.awaitTermination(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                .isTrue();
        assertThat(failure(pending)).isIn(Status.Code.UNAVAILABLE, Status.Code.CANCELLED);
        Throwable down =
                catchThrowable(() -> ClientCalls.blockingUnaryCall(channel, ECHO, CallOptions.DEFAULT, new byte[1]));
        assertThat(Status.fromThrowable(down).getCode()).isEqualTo(Status.Code.UNAVAILABLE);
        serve(port, builder -> {});
        byte[] answer = ClientCalls.blockingUnaryCall(
                channel,
                ECHO,
                CallOptions.DEFAULT.withWaitForReady().withDeadlineAfter(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS),
                new byte[] {4, 2});
        assertThat(answer).containsExactly(4, 2);
    }

    @Test
    void manyChannelsCallAtOnce() throws Exception {
        Server server = serve();
        List<ListenableFuture<byte[]>> calls = new ArrayList<>();
        for (int i = 0; i < manyChannels(); i++) {
            ManagedChannel channel = channelTo(server);
            for (int call = 0; call < 3; call++) {
                calls.add(ClientCalls.futureUnaryCall(
                        channel.newCall(ECHO, CallOptions.DEFAULT), random(i * 3L + call, 20_000)));
            }
        }
        for (int i = 0; i < calls.size(); i++) {
            assertThat(calls.get(i).get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                    .isEqualTo(random(i, 20_000));
        }
    }
}
