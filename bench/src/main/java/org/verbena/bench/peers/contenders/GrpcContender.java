package org.verbena.bench.peers.contenders;

import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.MethodDescriptor;
import io.grpc.ServerBuilder;
import io.grpc.ServerServiceDefinition;
import io.grpc.inprocess.InProcessChannelBuilder;
import io.grpc.inprocess.InProcessServerBuilder;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.ServerCalls;
import io.grpc.stub.StreamObserver;
import io.netty.channel.Channel;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.ServerChannel;
import io.netty.channel.nio.NioIoHandler;
import io.netty.channel.socket.nio.NioDomainSocketChannel;
import io.netty.channel.socket.nio.NioServerDomainSocketChannel;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.channel.socket.nio.NioSocketChannel;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import org.verbena.api.RdmaChannelOption;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.bench.peers.Contender;
import org.verbena.bench.peers.Load;
import org.verbena.bench.peers.Place;
import org.verbena.bench.peers.contenders.GrpcMessages.Numbered;
import org.verbena.grpc.VerbenaGrpc;

/**
 * gRPC, in unary calls, with all messages in one stream each way, or streamed by the server. The messages are plain
 * bytes, cheaper than protobuf; both sides work in the event loop (direct executor), with no hand-over to another
 * thread. Unary calls take turns at as many connections as {@link Place#connections} says.
 */
@SuppressWarnings({"NullAway", "CatchAndPrintStackTrace"}) // a measured program: what it prints goes to its log
public final class GrpcContender implements Contender {

    /** What is under gRPC. */
    public enum Transport {
        /** gRPC's own (shaded) Netty on TCP, which chooses epoll and the number of loops. */
        SHADED,
        /** Netty's NIO sockets, one loop. */
        NIO,
        /** The same on a Unix domain socket. */
        UNIX,
        /** Verbena's streams, one loop. */
        VERBENA,
        /** Verbena's messages, one loop. */
        NATIVE,
        /** None: the client's process has the server as well, and its heap and CPU time are those of both ends. */
        IN_PROCESS
    }

    /** What its calls are. */
    public enum Kind {
        /** A call for each message. */
        UNARY,
        /** One call, with a stream each way. */
        STREAM,
        /** One call, which the server answers with a stream. */
        DOWNLOAD
    }

    private static final int MAX_MESSAGE = 17 << 20;
    private static final String NAME = "peerbench";

    private static final MethodDescriptor<Numbered, byte[]> CALL =
            echo(MethodDescriptor.MethodType.UNARY, new GrpcMessages.OfNumbered());
    private static final MethodDescriptor<byte[], byte[]> SERVICE =
            echo(MethodDescriptor.MethodType.UNARY, new GrpcMessages.OfBytes());
    private static final MethodDescriptor<Numbered, byte[]> STREAM =
            echo(MethodDescriptor.MethodType.BIDI_STREAMING, new GrpcMessages.OfNumbered());
    private static final MethodDescriptor<byte[], byte[]> STREAM_SERVICE =
            echo(MethodDescriptor.MethodType.BIDI_STREAMING, new GrpcMessages.OfBytes());

    private final Transport transport;
    private final Kind kind;

    /**
     * Makes one.
     *
     * @param transport what is under gRPC
     * @param kind what its calls are
     */
    public GrpcContender(Transport transport, Kind kind) {
        this.transport = transport;
        this.kind = kind;
    }

    private static <T> MethodDescriptor<T, byte[]> echo(
            MethodDescriptor.MethodType type, MethodDescriptor.Marshaller<T> requests) {
        return MethodDescriptor.<T, byte[]>newBuilder()
                .setType(type)
                .setFullMethodName(
                        type == MethodDescriptor.MethodType.UNARY ? "peerbench.Echo/echo" : "peerbench.Echo/stream")
                .setRequestMarshaller(requests)
                .setResponseMarshaller(new GrpcMessages.OfBytes())
                .build();
    }

    @Override
    public List<String> jvmFlags() {
        List<String> flags = new ArrayList<>(Nettys.JVM_FLAGS);
        flags.add("-Dio.grpc.netty.shaded.io.netty.tryReflectionSetAccessible=true");
        return flags;
    }

    private ServerBuilder<?> serverBuilder(Path socket) {
        InetSocketAddress any = Place.address(0);
        return switch (transport) {
            case SHADED -> NettyServerBuilder.forAddress(any);
            case NIO -> nioServer(any, NioServerSocketChannel.class);
            case UNIX -> {
                Place.refuseHost("a Unix domain socket");
                yield nioServer(UnixDomainSocketAddress.of(socket), NioServerDomainSocketChannel.class);
            }
            case VERBENA ->
                VerbenaGrpc.server(any, new RdmaEventLoopGroup(Place.provider(), 1))
                        .withChildOption(RdmaChannelOption.SHARED_RECEIVE_QUEUE, Place.connections() > 1);
            case NATIVE ->
                VerbenaGrpc.nativeServer(any, new RdmaEventLoopGroup(Place.provider(), 1))
                        .withChildOption(
                                RdmaChannelOption.SHARED_RECEIVE_QUEUE, Place.connections() > 1); // as a server of many
            case IN_PROCESS -> {
                Place.refuseHost("gRPC in a process");
                yield InProcessServerBuilder.forName(NAME);
            }
        };
    }

    private static ServerBuilder<?> nioServer(SocketAddress address, Class<? extends ServerChannel> type) {
        EventLoopGroup group = new MultiThreadIoEventLoopGroup(1, NioIoHandler.newFactory());
        return io.grpc.netty.NettyServerBuilder.forAddress(address)
                .channelType(type)
                .bossEventLoopGroup(group)
                .workerEventLoopGroup(group);
    }

    /** The loop of all channels of a client; null for those that have their own. */
    private EventLoopGroup clientLoop() {
        return switch (transport) {
            case NIO, UNIX -> new MultiThreadIoEventLoopGroup(1, NioIoHandler.newFactory());
            case VERBENA, NATIVE -> new RdmaEventLoopGroup(Place.provider(), 1);
            case SHADED, IN_PROCESS -> null;
        };
    }

    private ManagedChannelBuilder<?> channelBuilder(String address, EventLoopGroup loop) {
        return switch (transport) {
            case SHADED -> NettyChannelBuilder.forAddress(Place.address(Integer.parseInt(address)));
            case NIO -> nioChannel(Place.address(Integer.parseInt(address)), NioSocketChannel.class, loop);
            case UNIX ->
                nioChannel(UnixDomainSocketAddress.of(address), NioDomainSocketChannel.class, loop)
                        .overrideAuthority("localhost"); // or it would be the path
            case VERBENA ->
                VerbenaGrpc.overRdma(
                        io.grpc.netty.NettyChannelBuilder.forAddress(Place.address(Integer.parseInt(address))),
                        (RdmaEventLoopGroup) loop);
            case NATIVE -> {
                InetSocketAddress server = Place.address(Integer.parseInt(address));
                yield VerbenaGrpc.nativeChannel(server.getHostString(), server.getPort(), (RdmaEventLoopGroup) loop)
                        .http2Fallback(false);
            }
            case IN_PROCESS -> InProcessChannelBuilder.forName(address);
        };
    }

    private static ManagedChannelBuilder<?> nioChannel(
            SocketAddress address, Class<? extends Channel> type, EventLoopGroup loop) {
        return io.grpc.netty.NettyChannelBuilder.forAddress(address)
                .channelType(type)
                .eventLoopGroup(loop);
    }

    private io.grpc.Server start(Path socket) throws IOException {
        return serverBuilder(socket)
                .directExecutor()
                .maxInboundMessageSize(MAX_MESSAGE)
                .addService(ServerServiceDefinition.builder("peerbench.Echo")
                        .addMethod(SERVICE, ServerCalls.asyncUnaryCall((request, response) -> {
                            response.onNext(request);
                            response.onCompleted();
                        }))
                        .addMethod(STREAM_SERVICE, ServerCalls.asyncBidiStreamingCall(EchoStream::new))
                        .addMethod(GrpcDownload.service())
                        .build())
                .build()
                .start();
    }

    @Override
    public Server startServer(Path scratch) throws IOException {
        Path socket = scratch.resolve("grpc");
        io.grpc.Server server = start(socket);
        return new Server() {
            @Override
            public String address() {
                return switch (transport) {
                    case UNIX -> socket.toString();
                    case IN_PROCESS -> NAME; // of the server that the client's process has
                    case SHADED, NIO, VERBENA, NATIVE -> Integer.toString(server.getPort());
                };
            }

            @Override
            public void close() {
                server.shutdownNow();
            }
        };
    }

    @Override
    public Client connect(String address) throws IOException {
        io.grpc.Server own = transport == Transport.IN_PROCESS ? start(Path.of(NAME)) : null;
        EventLoopGroup loop = clientLoop();
        List<ManagedChannel> channels = new ArrayList<>();
        for (int i = Place.connections(); i > 0; i--) {
            ManagedChannel channel = channelBuilder(address, loop)
                    .usePlaintext()
                    .directExecutor()
                    .maxInboundMessageSize(MAX_MESSAGE)
                    .build();
            channels.add(channel);
            ClientCalls.blockingUnaryCall(
                    channel, CALL, CallOptions.DEFAULT, new Numbered(0, new byte[Long.BYTES])); // connects it
        }
        AtomicInteger turn = new AtomicInteger();
        return new Client() {
            @Override
            public void run(Load load) throws Exception {
                switch (kind) {
                    case STREAM -> new Stream(channels.getFirst(), load).run();
                    case DOWNLOAD -> new GrpcDownload(channels.getFirst(), load).run();
                    case UNARY ->
                        new Calls(load, (unary, sequence) -> {
                                    ManagedChannel next =
                                            channels.get(Math.floorMod(turn.getAndIncrement(), channels.size()));
                                    ClientCalls.asyncUnaryCall(
                                            next.newCall(CALL, CallOptions.DEFAULT),
                                            new Numbered(sequence, unary.payload()),
                                            new Answer(unary));
                                })
                                .run();
                }
            }

            @Override
            public void close() {
                channels.forEach(ManagedChannel::shutdownNow);
                if (own != null) {
                    own.shutdownNow();
                }
            }
        };
    }

    /** Sends back what comes. */
    private record EchoStream(StreamObserver<byte[]> response) implements StreamObserver<byte[]> {
        @Override
        public void onNext(byte[] message) {
            response.onNext(message);
        }

        @Override
        public void onError(Throwable cause) {
            // The client has gone: nothing is left to do.
        }

        @Override
        public void onCompleted() {
            response.onCompleted();
        }
    }

    /**
     * One call; every echo is answered with the next message. The first messages come from another thread, hence the
     * lock.
     */
    private static final class Stream implements StreamObserver<byte[]> {
        private final Load load;
        private final StreamObserver<Numbered> requests;
        private final CompletableFuture<Void> done = new CompletableFuture<>();
        private boolean ended;

        Stream(ManagedChannel channel, Load load) {
            this.load = load;
            ClientCall<Numbered, byte[]> call = channel.newCall(STREAM, CallOptions.DEFAULT);
            requests = ClientCalls.asyncBidiStreamingCall(call, this);
        }

        void run() throws Exception {
            send();
            done.get();
        }

        private void send() {
            synchronized (load) {
                for (long sequence; (sequence = load.next()) >= 0; ) {
                    requests.onNext(new Numbered(sequence, load.payload));
                }
                if (load.finished() && !ended) {
                    ended = true;
                    requests.onCompleted();
                }
            }
        }

        @Override
        public void onNext(byte[] echo) {
            synchronized (load) {
                load.echoed(ByteBuffer.wrap(echo).getLong(), echo.length, echo[echo.length - 1]);
                send();
            }
        }

        @Override
        public void onError(Throwable cause) {
            done.completeExceptionally(cause);
        }

        @Override
        public void onCompleted() {
            done.complete(null);
        }
    }

    /** One call, in its own method of the service. */
    private record Answer(Calls calls) implements StreamObserver<byte[]> {
        @Override
        public void onNext(byte[] echo) {
            calls.replied(ByteBuffer.wrap(echo).getLong(), echo.length, echo[echo.length - 1]);
        }

        @Override
        public void onError(Throwable cause) {
            calls.failed(cause);
        }

        @Override
        public void onCompleted() {
            calls.next();
        }
    }
}
